"""The laboratory: the paper's experiments, real cases, benches against peers, and their reports."""
