// One value a thread, scanned over the block by the pattern that the configuration names, and nothing beside it: what is drawn
// and counted of the scans inside (`src/lab/trace/team.rs`).
#include "../faults/hooks.cuh"
#include "../block/team.cuh"
#include "../block/team_scan.cuh"
#include "../config.cuh"
#include "../memory.cuh"

namespace {

using namespace lookback;

struct team_scratch {
  u32 values[2 * LOOKBACK_MAXIMUM_BLOCK_THREADS];
};

}  // namespace

extern "C" void lookback_scan_of_team(const lookback_config* config, const lookback_launch* launch) {
  SHARED(team_scratch, scratch);
  const u32 thread = thread_index();
  const u32 value = memory::load(static_cast<const u32*>(launch->input) + thread);
  const team_scan_result<u32> scanned =
      team_scan<block_team, operators::sum<u32>>(runtime_config(*config), value, scratch.values);
  memory::store(static_cast<u32*>(launch->output) + thread, scanned.exclusive);
}
