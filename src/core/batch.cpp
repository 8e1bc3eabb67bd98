#include "batch.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "elimination.hpp"
#include "merging.hpp"
#include "structure.hpp"

namespace forewise {

namespace baseline {
extern const Kernels kernels;
}
#ifdef FOREWISE_X86
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}
#endif

namespace {

const Kernels& choose() {
#ifdef FOREWISE_X86
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const char* wish = std::getenv("FOREWISE_INSTRUCTIONS");
    auto allows = [&](const char* name) { return !wish || std::strcmp(wish, name) == 0; };
    if (has_avx512 && allows("avx512")) return avx512::kernels;
    if (has_avx2 && allows("avx2")) return avx2::kernels;
#endif
    return baseline::kernels;
}

// Scratch memory that begins at a line of the cache, zero at first.
struct Memory {
    double* data;

    explicit Memory(std::size_t count) {
        const std::size_t bytes = (count * sizeof(double) + 63) / 64 * 64;
        data = static_cast<double*>(std::aligned_alloc(64, bytes ? bytes : 64));
        if (data) std::memset(data, 0, bytes);
    }
    ~Memory() { std::free(data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
};

// Bytes that can be allocated without swapping; infinite where the system does not tell.
double available_memory() {
    std::FILE* file = std::fopen("/proc/meminfo", "r");
    double bytes = std::numeric_limits<double>::infinity();
    if (!file) return bytes;
    char line[256];
    long long kilobytes = 0;
    while (std::fgets(line, sizeof line, file)) {
        if (std::sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) bytes = 1024.0 * kilobytes;
    }
    std::fclose(file);
    return bytes;
}

constexpr double LARGE = 1e8;  // bytes from which on it is asked whether they are there

// Gives each thread a range of contexts, and memory: as many threads as it is enough for.
template <class Run>
Shortage on_threads(int n_contexts, int n_threads, std::size_t room, Run run) {
    if (n_threads > n_contexts) n_threads = n_contexts;
    if (n_threads < 1) n_threads = 1;
    const double bytes = double(room) * sizeof(double);
    if (bytes * n_threads > LARGE) {
        const double available = available_memory();
        if (bytes > available) return {bytes, available};
        while (bytes * n_threads > available) --n_threads;
    }
    std::atomic<bool> enough{true};
    auto work = [&](int i) {
        const int low = int(std::int64_t(n_contexts) * i / n_threads);
        const int high = int(std::int64_t(n_contexts) * (i + 1) / n_threads);
        Memory memory(room);
        if (memory.data) {
            run(memory.data, low, high);
        } else {
            enough = false;
        }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < n_threads; ++i) others.emplace_back(work, i);
    work(0);
    for (std::thread& other : others) other.join();
    return enough ? Shortage{} : Shortage{bytes * n_threads, 0.0};
}

}  // namespace

const Kernels& chosen_kernels() {
    static const Kernels& chosen = choose();
    return chosen;
}

Plan make_plan(const Program& p) {
    Plan plan;
    plan.structure = find_structure(p);
    if (plan.structure.is_linking()) plan.elimination = plan_elimination(p, plan.structure);
    return plan;
}

Shortage follow_paths(
    const Program& p, int n_threads, const Options& options, const double* targets,
    const Ends& solutions, const Ends& centres, std::int64_t* ended, std::int64_t* iterations
) {
    if (!p.B) return {};
    if (const auto merged = merge(p)) {
        MergedEnds of_solutions(p, nullptr, solutions.holds), of_centres(p, nullptr, centres.holds);
        std::optional<MergedPoints> of_start;
        ConstPoints start;
        Options same = options;
        if (options.start) {
            const Points& x = of_start.emplace(p, options.start).points;
            start = {x.z, x.u, x.first, x.scenario, x.nu, x.nus};
            same.start = &start;
        }
        const Shortage shortage = follow_paths(
            merged->program, n_threads, same, targets, of_solutions.ends, of_centres.ends, ended,
            iterations
        );
        of_solutions.split(p, solutions);
        if (centres.holds != solutions.holds) of_centres.split(p, centres);
        return shortage;
    }
    const Plan plan = make_plan(p);
    const Kernels& kernels = chosen_kernels();
    return on_threads(p.B, n_threads, kernels.room(p, plan), [&](double* memory, int low, int high) {
        kernels.follow(
            p, plan, memory, low, high, options, targets, solutions, centres, ended, iterations
        );
    });
}

Shortage solve_adjoints(
    const Program& p, int n_threads, const ConstEnds& ends, const ConstPoints& right,
    const bool* wanted, const Points& out, double* corrections
) {
    if (!p.B) return {};
    if (const auto merged = merge(p)) {
        // The system is not written to; `holds` is read alone.
        const MergedEnds of_ends(p, &ends, const_cast<double*>(ends.holds));
        const Ends& e = of_ends.ends;
        const Points& x = e.points;
        const MergedPoints of_right(p, &right);
        const MergedPoints found(p, nullptr);
        const Points& y = of_right.points;
        const Shortage shortage = solve_adjoints(
            merged->program, n_threads,
            {{x.z, x.u, x.first, x.scenario, x.nu, x.nus}, e.slack_first, e.slack_scenario, e.holds},
            {y.z, y.u, y.first, y.scenario, y.nu, y.nus}, wanted, found.points, corrections
        );
        found.split(p, out);
        return shortage;
    }
    const Plan plan = make_plan(p);
    const Kernels& kernels = chosen_kernels();
    return on_threads(p.B, n_threads, kernels.room(p, plan), [&](double* memory, int low, int high) {
        kernels.adjoint(p, plan, memory, low, high, ends, right, wanted, out, corrections);
    });
}

Shortage find_units(const Program& p, double* out) {
    if (!p.B) return {};
    const Plan plan = make_plan(p);
    const Kernels& kernels = chosen_kernels();
    return on_threads(1, 1, kernels.room(p, plan), [&](double* memory, int, int) {
        kernels.units(p, plan, memory, out);
    });
}

}  // namespace forewise
