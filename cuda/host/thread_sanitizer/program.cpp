// The kernels under ThreadSanitizer: a program of its own, compiled on demand by `src/lab/stress/thread_sanitizer`
// with the kernels instrumented (-fsanitize=thread, LOOKBACK_THREAD_SANITIZER) and this file not. A second
// opinion beside the CPU device's own model of weak memory, by somebody else's idea of a data race.
//
// Every CUDA thread is a fiber of ThreadSanitizer on the one OS thread, switched to without telling it of any
// order. What orders memory is told to it, and nothing else:
// - block and warp barriers: a release before and an acquire behind, of an address that stands for the barrier;
// - the end of a launch, before the start of the next: likewise;
// - acquire and release accesses: they are atomics in the instrumented kernels, with their own orders;
// - fences, which it does not know: see `fences.h`;
// - barriers of copies, the copies that they count, and the barrier of a cluster: see `copies.h`.
// Shuffles and ballots order nothing, relaxed accesses neither. Element, shared and payload accesses are plain.
//
// It finds data races by happens-before, so few schedules suffice; but its accesses are sequentially consistent,
// so it shows no stale value, and what is atomic cannot race: an order that matters only between atomics is beyond it.
//
// ThreadSanitizer loses races without a word where more than 256 threads live at once, hence `fiber_limit`. Making
// a fiber takes it half a millisecond, so blocks take over the fibers of ended ones, and with them what those knew:
// such a block happens after the ended one. So there are fibers for more blocks than may be resident, and those that
// have rested longest come first: a block and the ones right before it never share any.
//
// Silence is worth nothing from a detector that sleeps. So a process in which no schedule showed anything goes on with
// a canary, on the same fibers: the look-back with a fault that is a race. Only when that is reported, the verdict is
// clean.
//
// Jobs come on standard input, lines of a key and numbers up to the line "run". A line "job" with its number goes to
// standard output as each begins, and behind the last one a line of verdict, that of the first which is not clean:
//   clean schedules=.. blocks=.. switches=.. protocol=.. fibers=..
//   race seed=.. launch=.. block=.. thread=..   and ThreadSanitizer's report on standard error
//   wrong seed=.. launch=.. index=..
//   lost-progress seed=.. launch=.. waiting=.. missing=..
//   fault seed=.. launch=.. what happened
//   asleep
//   refused why
#include <sys/mman.h>
#include <sys/syscall.h>

#include <initializer_list>

#include "../../faults/hooks.cuh"
#include "../../operators.cuh"
#include "callbacks.h"

extern "C" {
// LOOKBACK_INSTANCES is `Job::INSTANCES` in Rust: operators, and the tables of their kernels.
#define LOOKBACK_DECLARE(Operator, bodies) lookback_kernel_body bodies(lookback_u32 kernel);
LOOKBACK_INSTANCES(LOOKBACK_DECLARE)
}

namespace {

// Reports are written on the stack of the fiber that finds the race.
constexpr std::size_t stack_bytes = 512 * 1024;
constexpr std::size_t guard_bytes = 256;

// Inputs by position: what stands where shows in the result.
void make(u32& value, u64 index, u64 salt) { value = static_cast<u32>(mix(index ^ salt << 32)); }
void make(u64& value, u64 index, u64 salt) { value = mix(index ^ salt << 32); }
void make(lookback::affine_map& value, u64 index, u64 salt) {
  value = {mix(index ^ salt << 32) | 1, mix(~index ^ salt << 32)};
}
void make(lookback::index_interval& value, u64 index, u64 salt) {
  const u32 place = static_cast<u32>(salt * 1000 + 10 + index);
  value = {place, place};
}

template <class Operator>
void fill(void* array, u64 count, u64 salt) {
  using T = typename Operator::value_type;
  for (u64 i = 0; i < count; ++i) make(static_cast<T*>(array)[i], i, salt);
}

// The index of the first element that is not the scan's; n if there is none.
template <class Operator>
u64 first_wrong(const void* result, u64 n, u64 salt) {
  using T = typename Operator::value_type;
  T prefix = Operator::identity();
  for (u64 i = 0; i < n; ++i) {
    T item;
    make(item, i, salt);
    const T next = Operator::combine(prefix, item);
    const T expected = job.mode == LOOKBACK_MODE_INCLUSIVE ? next : prefix;
    const u8* const left = reinterpret_cast<const u8*>(&expected);
    const u8* const right = reinterpret_cast<const u8*>(static_cast<const T*>(result) + i);
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      if (left[byte] != right[byte]) return i;
    }
    prefix = next;
  }
  return n;
}

struct instance {
  u64 bytes;
  lookback_kernel_body (*bodies)(u32 kernel);
  void (*fill)(void* array, u64 count, u64 salt);
  u64 (*first_wrong)(const void* result, u64 n, u64 salt);
};

#define LOOKBACK_INSTANCE(Operator, bodies) \
  {sizeof(typename Operator::value_type), bodies, fill<Operator>, first_wrong<Operator>},

const instance instances[] = {LOOKBACK_INSTANCES(LOOKBACK_INSTANCE)};

u8* allocate(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse("no memory: %zu bytes", bytes);
  return static_cast<u8*>(memory);
}

struct {
  u8* input;
  u8* output;
  u8* scratch;
  u8* descriptors;
  lookback_control control;
  u64 capacity;
} workspace;

void* place(long long where) {
  switch (where) {
    case place_none: return nullptr;
    case place_input: return workspace.input;
    case place_output: return workspace.output;
    default: return workspace.scratch + where;
  }
}

// An exclusive scan must do without the last element.
u64 readable(u64 n) { return job.mode == LOOKBACK_MODE_EXCLUSIVE ? n - 1 : n; }

void run_step(const instance& chosen, const step& what, u32 host_epoch) {
  body = chosen.bodies(what.kernel);
  config = what.config;
  block_threads = what.threads;
  arguments.input = place(what.input);
  arguments.output = place(what.output);
  arguments.spine = place(what.spine);
  arguments.control = &workspace.control;
  arguments.descriptors = workspace.descriptors;
  arguments.n = what.n;
  arguments.tiles = what.tiles;
  arguments.stride = what.stride;
  arguments.capacity = workspace.capacity;
  arguments.lead = what.lead;
  arguments.host_epoch = host_epoch;
  grid_blocks = what.grid_blocks;
  is_cluster = what.is_cluster != 0;
  dynamic_bytes = 0;
  if (what.stage_bytes != 0) {
    // Short rings, by the seed: whoever gives a stage back too soon meets the next tile there.
    config.stages = 1 + static_cast<u32>(mix(seed) % 4);
    dynamic_bytes = config.stages * what.stage_bytes + LOOKBACK_CACHE_LINE_BYTES - LOOKBACK_VECTOR_BYTES;
  }
  begin_launch_of_copies();
  started_blocks = 0;
  finished_blocks = 0;
  idle_rounds = 0;
  for (location& known : locations) known = {nullptr, nullptr};
  for (idle_count = 0; idle_count < fiber_count / block_threads; ++idle_count) {
    block& made = blocks[idle_count];
    for (u32 i = 0; i < block_threads; ++i) made.threads[i] = &fibers[idle_count * block_threads + i];
    idle[idle_count] = &made;
  }
  __tsan_release(&launch_start);
  // Blocks of a cluster are resident together.
  for (u64 i = 0; i < (is_cluster ? grid_blocks : job.resident_blocks); ++i) start_block();
  suspend();
  if (finished_blocks != grid_blocks) {
    fault("deadlock: %llu of %llu blocks ended", finished_blocks, grid_blocks);
  }
  __tsan_acquire(&launch_end);
}

void run_schedule(const instance& chosen) {
  random_state = mix(seed);
  // The plain order as well: thread 0 first, each until it has to wait.
  in_order = seed % 4 == 0;
  set(workspace.descriptors, workspace.capacity * job.descriptor_bytes, 0);
  workspace.control = {};
  u32 epoch = 1;
  for (launch_number = 0; launch_number < job.launches; ++launch_number) {
    const u64 salt = mix(seed * 1000 + launch_number) & 0xffff;
    const bool is_at_wrap = launch_number == 1 && job.wrap;
    const auto& scan = is_at_wrap ? job.small : job.whole;
    if (is_at_wrap) {
      workspace.control.completed_epochs = LOOKBACK_MAXIMUM_EPOCH - 1;
      epoch = LOOKBACK_MAXIMUM_EPOCH;
    }
    set(workspace.output, scan.n * chosen.bytes, 0xa5);
    set(workspace.scratch, job.scratch_bytes, 0xa5);
    chosen.fill(workspace.input, readable(scan.n), salt);
    for (u32 i = 0; i < scan.step_count; ++i) run_step(chosen, scan.steps[i], job.frozen ? 1 : epoch);
    const u64 wrong = chosen.first_wrong(workspace.output, scan.n, salt);
    if (wrong < scan.n) {
      std::printf("wrong seed=%llu launch=%llu index=%llu\n", seed, launch_number, wrong);
      finish();
    }
    epoch = epoch == LOOKBACK_MAXIMUM_EPOCH ? 1 : epoch + 1;
  }
  ++total.schedules;
}

void make_fiber(fiber& made, void (*function)()) {
  made.sanitizer = __tsan_create_fiber(0);
  made.thread.counters = &made.counters;
  made.thread.executor = &executor;
  getcontext(&made.context);
  made.context.uc_stack.ss_sp = allocate(stack_bytes);
  made.context.uc_stack.ss_size = stack_bytes;
  makecontext(&made.context, function, 0);
}

// What no kernel may touch is written once by a thread that nobody is ordered with, so every access is a race.
struct {
  u8* start;
  std::size_t bytes;
} forbidden[8];
u32 forbidden_count;

void forbid(u8* start, std::size_t bytes) { forbidden[forbidden_count++] = {start, bytes}; }

fiber outsider;
u8 forbidden_made;

void write_forbidden() {
  for (;;) {
    __tsan_acquire(&forbidden_made);  // making memory is a write of it
    for (u32 i = 0; i < forbidden_count; ++i) __tsan_write_range(forbidden[i].start, forbidden[i].bytes);
    switch_to(&main_fiber);
  }
}

// `bytes` that kernels may use, `offset` above a multiple of 16, between guards.
u8* allocate_guarded(std::size_t bytes, std::size_t offset) {
  u8* const memory = allocate(bytes + offset + 2 * guard_bytes);
  u8* const start = memory + guard_bytes + offset;
  forbid(memory, guard_bytes + offset);
  forbid(start + bytes, guard_bytes);
  return start;
}

void prepare(const instance& chosen) {
  u32 threads = 0;
  u64 most_blocks = 0;
  bool has_copies = false;
  for (const auto* scan : {&job.whole, &job.small, &job.canary}) {
    for (u32 i = 0; i < scan->step_count; ++i) {
      const step& what = scan->steps[i];
      if (what.threads > thread_limit || what.threads % LOOKBACK_WARP_LANES != 0) {
        refuse("%u threads a block: the program takes whole warps, up to %u", what.threads, thread_limit);
      }
      if (what.is_cluster && what.grid_blocks > job.resident_blocks) {
        refuse("a cluster of %llu blocks, %llu are resident", what.grid_blocks, job.resident_blocks);
      }
      has_copies |= what.stage_bytes != 0 || what.is_cluster;
      if (instances[0].bodies(what.kernel) == nullptr) refuse("no kernel %u", what.kernel);
      if (what.threads > threads) threads = what.threads;
      if (what.grid_blocks > most_blocks) most_blocks = what.grid_blocks;
    }
  }
  if (job.whole.n == 0 || job.resident_blocks == 0) refuse("nothing to do");
  if (job.small.n > job.whole.n || (job.wrap && job.small.step_count == 0)) refuse("no smaller scan");
  if (job.canary.n == 0 || job.canary.step_count != 1) refuse("no canary");
  if (most_blocks > 1024) refuse("%llu blocks: the program takes 1024", most_blocks);  // `Job::BLOCKS`
  if (job.resident_blocks > fiber_limit || job.resident_blocks * threads > fiber_limit) {
    refuse("%llu resident blocks of %u threads are more than the %u threads that ThreadSanitizer keeps apart",
           job.resident_blocks, threads, fiber_limit);
  }
  u32 most = static_cast<u32>(job.resident_blocks + 2) * threads;
  if (most > fiber_limit) most = fiber_limit / threads * threads;
  while (fiber_count < most) make_fiber(fibers[fiber_count++], live);
  if (has_copies) make_engines();

  if (most_blocks > arena_count) {
    arena_count = most_blocks;
    arenas = allocate(arena_count * arena_bytes);
  }
  const std::size_t readable_bytes = readable(job.whole.n) * chosen.bytes;
  forbidden_count = 0;
  workspace.output =
      allocate_guarded(job.whole.n * chosen.bytes, job.in_place ? job.input_offset : job.output_offset);
  workspace.input = job.in_place ? workspace.output : allocate_guarded(readable_bytes, job.input_offset);
  workspace.scratch = allocate_guarded(job.scratch_bytes, 0);
  workspace.capacity = (job.descriptors + 3) / 4 * 4;  // as the split layout asks
  workspace.descriptors = allocate_guarded(workspace.capacity * job.descriptor_bytes, 0);
  __tsan_release(&forbidden_made);
  switch_to(&outsider);
}

void say_clean() {
  std::printf("clean schedules=%llu blocks=%llu switches=%llu protocol=%llu fibers=%u\n", total.schedules, total.blocks,
              total.switches, total.protocol, fiber_count);
}

// Runs the look-back whose tags are stored relaxed until its race is reported (`__tsan_on_report`).
[[noreturn]] void run_canary() {
  is_canary = true;
  const instance& chosen = instances[0];
  const u64 bytes = job.canary.n * chosen.bytes;
  job.mutant = lookback::mutant_number("relaxed_tag_store");
  job.reverse = 0;
  workspace.input = allocate(bytes);
  workspace.output = allocate(bytes);
  workspace.capacity = (job.canary.steps[0].tiles + 3) / 4 * 4;
  const u64 descriptor_bytes = workspace.capacity * (sizeof(u32) + 2 * chosen.bytes);  // the split layout
  workspace.descriptors = allocate(descriptor_bytes);
  const u64 schedules = seed + 32;
  while (++seed < schedules) {
    random_state = mix(seed);
    in_order = false;
    set(workspace.descriptors, descriptor_bytes, 0);
    workspace.control = {};
    run_step(chosen, job.canary.steps[0], 1);
  }
  sleeps();
}

}  // namespace

extern "C" void lookback_copy_unseen(void* to, const void* from, u32 bytes) {
  // Byte by byte behind the compiler's back: it would make this a call of memcpy, which ThreadSanitizer sees.
  for (u32 i = 0; i < bytes; ++i) {
    static_cast<u8*>(to)[i] = static_cast<const u8*>(from)[i];
    asm volatile("" ::: "memory");
  }
}

extern "C" void __tsan_on_report(const void*) {
  if (is_canary) {
    // Nobody needs this report, and an ordinary exit waits for it.
    say_clean();
    std::fflush(stdout);
    syscall(SYS_exit_group, 0);
  }
  // The report follows, and then the end of the process. The other thread's block may have ended and its fiber been
  // taken by another one, so only this one can be named.
  const lookback_thread& thread = (asker_of_landing != nullptr ? asker_of_landing : running)->thread;
  std::printf("race seed=%llu launch=%llu block=%llu thread=%u\n", seed, launch_number, thread.block_index,
              thread.thread_index);
  std::fflush(stdout);
}

const instance& instance_of_job() {
  if (job.instance < sizeof(instances) / sizeof(instances[0])) return instances[job.instance];
  refuse("no kernels of instance %llu", job.instance);
}

int main() {
  main_fiber.sanitizer = __tsan_get_current_fiber();
  make_fiber(outsider, write_forbidden);
  u32 jobs = 0;
  for (; read_job(); ++jobs) {
    std::printf("job %u\n", jobs);
    std::fflush(stdout);
    const instance& chosen = instance_of_job();
    prepare(chosen);
    for (u64 i = 0; i < job.seeds; ++i) {
      seed = job.first_seed + i;
      run_schedule(chosen);
    }
  }
  if (jobs == 0) {  // asked whether it can run at all
    std::printf("ready\n");
    finish();
  }
  run_canary();
}
