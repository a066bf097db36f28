// What the program is asked for, and the ways in which it ends early.
#pragma once

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "../../config.cuh"
#include "../executor.h"

namespace {

using lookback::u32;
using lookback::u64;
using lookback::u8;

constexpr u32 step_limit = 128;

enum : long long { place_none = -1, place_input = -2, place_output = -3 };

struct step {
  u32 kernel;
  lookback_config config;
  u64 grid_blocks;
  long long input, output, spine;  // a `place_` or an offset into the scratch memory
  u64 n, tiles, stride;
  u32 lead;
  u32 threads;  // of a block: those that hold values, and any beside them
  u64 stage_bytes;  // from one tile of a ring in dynamic shared memory to the next; 0 where blocks have none
  u64 is_cluster;   // whether the grid is one thread block cluster
};

struct job_description {
  u64 instance, mutant, first_seed, seeds, resident_blocks, launches, preemption, reverse, wrap, frozen;
  u64 mode, in_place, input_offset, output_offset, scratch_bytes, descriptors, descriptor_bytes;
  // The scan, the smaller one of the launch at the largest epoch, which leaves old descriptors behind, and the canary.
  struct scan {
    u64 n;
    step steps[step_limit];
    u32 step_count;
  } whole, small, canary;
};

job_description job;

// Where the program is.
u64 seed;
u64 launch_number;
bool is_canary;

[[noreturn]] void finish() {
  std::fflush(stdout);
  _exit(0);
}

[[noreturn]] void finish_with(const char* format, va_list arguments) {
  std::vprintf(format, arguments);
  std::printf("\n");
  finish();
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void refuse(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::printf("refused ");
  finish_with(format, arguments);
}

[[noreturn]] void sleeps() {
  std::printf("asleep\n");
  finish();
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void fault(const char* format, ...) {
  if (is_canary) sleeps();
  va_list arguments;
  va_start(arguments, format);
  std::printf("fault seed=%llu launch=%llu ", seed, launch_number);
  finish_with(format, arguments);
}

u64 read_number(const char* key) {
  long long number;
  if (std::scanf("%lld", &number) != 1) refuse("no number behind '%s'", key);
  return static_cast<u64>(number);
}

// Whether there is another job.
bool read_job() {
  const struct {
    const char* key;
    u64* value;
  } fields[] = {
      {"instance", &job.instance},
      {"mutant", &job.mutant},
      {"first-seed", &job.first_seed},
      {"seeds", &job.seeds},
      {"resident-blocks", &job.resident_blocks},
      {"launches", &job.launches},
      {"preemption", &job.preemption},
      {"reverse", &job.reverse},
      {"wrap", &job.wrap},
      {"frozen", &job.frozen},
      {"mode", &job.mode},
      {"n", &job.whole.n},
      {"small-n", &job.small.n},
      {"canary-n", &job.canary.n},
      {"in-place", &job.in_place},
      {"input-offset", &job.input_offset},
      {"output-offset", &job.output_offset},
      {"scratch-bytes", &job.scratch_bytes},
      {"descriptors", &job.descriptors},
      {"descriptor-bytes", &job.descriptor_bytes},
  };
  char key[64];
  if (std::scanf("%63s", key) != 1) return false;
  job = {};
  do {
    if (std::strcmp(key, "run") == 0) return true;
    const bool is_small = std::strcmp(key, "small-step") == 0;
    const bool is_of_canary = std::strcmp(key, "canary-step") == 0;
    if (is_small || is_of_canary || std::strcmp(key, "step") == 0) {
      auto& scan = is_small ? job.small : is_of_canary ? job.canary : job.whole;
      if (scan.step_count == step_limit) refuse("more than %u launches a scan", step_limit);
      step& next = scan.steps[scan.step_count++];
      next.kernel = static_cast<u32>(read_number(key));
      u32* const config[] = {&next.config.vt,          &next.config.block_threads, &next.config.mode,
                             &next.config.pattern,     &next.config.composition,   &next.config.descriptor,
                             &next.config.tile_order,  &next.config.alignment};
      for (u32* field : config) *field = static_cast<u32>(read_number(key));
      next.grid_blocks = read_number(key);
      next.input = static_cast<long long>(read_number(key));
      next.output = static_cast<long long>(read_number(key));
      next.spine = static_cast<long long>(read_number(key));
      next.n = read_number(key);
      next.tiles = read_number(key);
      next.stride = read_number(key);
      next.lead = static_cast<u32>(read_number(key));
      next.threads = static_cast<u32>(read_number(key));
      next.stage_bytes = read_number(key);
      next.is_cluster = read_number(key);
      continue;
    }
    bool known = false;
    for (const auto& field : fields) {
      if (std::strcmp(key, field.key) != 0) continue;
      *field.value = read_number(key);
      known = true;
    }
    if (!known) refuse("no key '%s'", key);
  } while (std::scanf("%63s", key) == 1);
  refuse("a job without an end");
}

}  // namespace
