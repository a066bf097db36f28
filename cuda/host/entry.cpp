// The translation unit that the host's compiler makes a library of at run time: one kernel, one problem, as `../entry.cu`
// for a GPU. LOOKBACK_KERNEL is the kernel's function, whose file stands in front of this one; LOOKBACK_PROBLEM is the
// problem's type (`src/element/problem.rs`).
#include "../entry.cuh"
#include "../problem/converting.cuh"
#include "../problem/count.cuh"
#include "../problem/plain.cuh"

#ifdef LOOKBACK_KERNEL_ALLOWS_NEXT_LAUNCH
constexpr bool kernel_allows_next_launch = true;
#else
constexpr bool kernel_allows_next_launch = false;
#endif

extern "C" [[gnu::visibility("default")]] void lookback_entry(const lookback_config* config, const lookback_launch* launch) {
  using lookback::runtime_config;
  const runtime_config values(*config);
  lookback::host::current()->parameters = launch->parameters;
  lookback::enter<kernel_allows_next_launch>([=] {
    lookback::with_count<LOOKBACK_PROBLEM>(values, *launch, [=](const lookback_launch& counted) {
      lookback::scan::LOOKBACK_KERNEL<LOOKBACK_PROBLEM, runtime_config>(values, counted);
    });
  });
}
