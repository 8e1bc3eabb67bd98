# A service of the policies in /policies. Build: docker build -t forewise .
# Run: see compose.yml; the token is a secret, and policies are mounted read-only.
FROM python:3.11-slim AS wheel
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
# PyTorch for processors alone: its other builds bring gigabytes of CUDA packages.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY constraints.txt /tmp/
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" -c /tmp/constraints.txt \
        "$(echo /tmp/wheels/*.whl)[serve]" \
    && rm -rf /tmp/wheels /tmp/constraints.txt \
    && useradd --system --uid 10001 --no-create-home forewise
USER forewise
# A batch is small: one thread for each is faster than many that wait for one another.
ENV OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
ENTRYPOINT ["forewise", "serve", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
CMD ["/policies/policy"]
