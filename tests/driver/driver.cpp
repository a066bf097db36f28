// A CUDA driver without a GPU, for tests/driver.rs: device memory is memory of the host, a launch is written down and runs
// nothing. It watches what a GPU would punish at some other time: memory that is freed or shared while a launch may still
// use it, launches that nothing orders, calls that would end a capture. What is wrong is a line in `violations`.
//
// Order is kept by clocks: an operation has a stream and a number there; a stream's clock says up to which number of each
// other stream its next operation comes behind, `completed` the same of the host.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "abi.h"

typedef int CUresult;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

namespace {

using clock_map = std::map<uint64_t, uint64_t>;

void merge(clock_map& into, const clock_map& from) {
  for (const auto& [stream, number] : from) {
    uint64_t& mine = into[stream];
    if (mine < number) mine = number;
  }
}

struct operation {
  uint64_t stream;
  uint64_t number;
  bool writes;
  uint64_t begin;
  uint64_t end;
};

struct allocation {
  uint64_t begin;
  uint64_t bytes;
  uint64_t name;  // never given twice, as addresses may be
  std::vector<operation> operations;
};

struct function;

// What the test reads; the same in tests/driver.rs.
struct launch_record {
  lookback_launch launch;
  uint64_t stream;
  uint64_t control_allocation;  // names; 0 for none
  uint64_t scratch_allocation;
  uint64_t bytes_behind_descriptors;
  const void* image;
  uint64_t image_bytes;
  uint32_t blocks;
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t cluster_blocks;
  uint32_t is_programmatic;
  uint32_t is_captured;
};

struct graph {
  std::vector<launch_record> launches;
  std::vector<uint64_t> allocations;
};

struct stream {
  uint64_t name = 0;
  uint64_t next = 1;
  clock_map clock;
  graph* captured = nullptr;
};

struct event {
  clock_map clock;
};

struct module {
  std::string image;
};

struct function {
  module* of;
  uint64_t allowed_shared_bytes = 48 * 1024;
  bool allows_large_clusters = false;
};

struct machine {
  int major = 9, minor = 0, multiprocessors = 4, resident_blocks = 2, cluster_blocks = 16;
  std::map<uint64_t, allocation> memory;  // by address
  uint64_t next_name = 1;
  stream null_stream;
  clock_map completed;
  std::vector<launch_record> launches;
  std::vector<graph*> graphs;  // instantiated
  std::vector<stream*> destroyed;
  std::string violations;
  std::string failing;  // the next call of this name fails
  uint64_t captures = 0;
  uint64_t waits = 0;  // of streams for events
};

std::mutex the_mutex;
machine* the_machine = new machine;
thread_local int capture_mode = 0;  // global; 2 is relaxed
thread_local void* current = nullptr;
int a_context;

using lock = std::lock_guard<std::mutex>;

void violation(const std::string& what) { the_machine->violations += what + "\n"; }

// 2 is CU_STREAM_PER_THREAD: as many streams as there are threads.
stream& of(void* handle) {
  if (handle == nullptr) return the_machine->null_stream;
  if (handle != reinterpret_cast<void*>(2)) return *static_cast<stream*>(handle);
  thread_local std::map<const machine*, stream> of_thread;
  stream& mine = of_thread[the_machine];
  if (mine.name == 0) mine.name = the_machine->next_name++;
  return mine;
}

bool fails(const char* call) {
  if (the_machine->failing != call) return false;
  the_machine->failing.clear();
  return true;
}

// What the driver refuses while a stream is captured, unless the thread says that it knows what it does.
void unsafe_in_capture(const char* call) {
  if (the_machine->captures != 0 && capture_mode != 2) violation(std::string(call) + " would end a capture");
  if (current == nullptr) violation(std::string(call) + " without a current context");
}

allocation* find(uint64_t address) {
  auto after = the_machine->memory.upper_bound(address);
  if (after == the_machine->memory.begin()) return nullptr;
  allocation& found = std::prev(after)->second;
  return address < found.begin + found.bytes ? &found : nullptr;
}

uint64_t number_in(const clock_map& clock, uint64_t stream) {
  const auto found = clock.find(stream);
  return found == clock.end() ? 0 : found->second;
}

// The next operation of a stream begins: behind all that the host has waited for.
uint64_t begin(stream& s) {
  merge(s.clock, the_machine->completed);
  const uint64_t number = s.next++;
  s.clock[s.name] = number;
  return number;
}

void touch(stream& s, uint64_t number, uint64_t address, uint64_t bytes, bool writes, const char* what) {
  allocation* a = find(address);
  if (a == nullptr || address + bytes > a->begin + a->bytes) {
    violation(std::string(what) + ": no memory of the device");
    return;
  }
  for (const operation& other : a->operations) {
    if (other.stream == s.name || !(other.writes || writes)) continue;
    if (other.end <= address || address + bytes <= other.begin) continue;
    if (number_in(s.clock, other.stream) < other.number) {
      violation(std::string(what) + ": nothing orders it behind what another stream does with the memory");
    }
  }
  a->operations.push_back({s.name, number, writes, address, address + bytes});
}

CUresult allocate(uint64_t* address, size_t bytes) {
  const uint64_t at = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(reinterpret_cast<void*>(at), 0xcd, bytes);
  the_machine->memory[at] = {at, bytes, the_machine->next_name++, {}};
  *address = at;
  return SUCCESS;
}

CUresult release(uint64_t address) {
  const auto found = the_machine->memory.find(address);
  if (found == the_machine->memory.end()) {
    violation("freed what was not allocated, or twice");
    return INVALID_VALUE;
  }
  for (const operation& other : found->second.operations) {
    if (number_in(the_machine->completed, other.stream) < other.number) {
      violation("freed while the stream may still use it");
      break;
    }
  }
  for (const graph* graph : the_machine->graphs) {
    for (uint64_t name : graph->allocations) {
      if (name == found->second.name) violation("freed while a graph may still use it");
    }
  }
  std::free(reinterpret_cast<void*>(address));
  the_machine->memory.erase(found);
  return SUCCESS;
}

// What a launch does to memory, and what must be there.
void run(stream& s, launch_record& record, graph* into) {
  const lookback_launch& launch = record.launch;
  const uint64_t number = into == nullptr ? begin(s) : 0;
  const auto use = [&](const void* p, bool writes, const char* what) -> allocation* {
    if (p == nullptr) return nullptr;
    const uint64_t address = reinterpret_cast<uint64_t>(p);
    allocation* a = find(address);
    if (a == nullptr) {
      violation(std::string(what) + " of a launch: no memory of the device");
    } else if (into != nullptr) {
      into->allocations.push_back(a->name);
    } else {
      touch(s, number, address, 1, writes, what);
    }
    return a;
  };
  use(launch.input, false, "the input");
  use(launch.initial_state, false, "the initial state");
  use(launch.final_state, true, "the final state");
  use(launch.output, true, "the output");
  allocation* scratch = use(launch.spine, true, "the spine");
  allocation* control = use(launch.control, true, "the control block");
  allocation* descriptors = use(launch.descriptors, true, "the descriptors");
  record.control_allocation = control == nullptr ? 0 : control->name;
  record.scratch_allocation = scratch == nullptr ? 0 : scratch->name;
  record.bytes_behind_descriptors = 0;
  if (descriptors != nullptr) {
    const uint64_t at = reinterpret_cast<uint64_t>(launch.descriptors);
    record.bytes_behind_descriptors = descriptors->begin + descriptors->bytes - at;
    if (descriptors != control) violation("descriptors apart from their control block");
    // Nothing runs here, so what was cleared once is still zero.
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(descriptors->begin);
    bool is_zero = true;
    for (uint64_t i = 0; i < descriptors->bytes; ++i) is_zero = is_zero && bytes[i] == 0;
    if (!is_zero) violation("descriptors that were never cleared");
  }
}

struct launch_attribute {
  uint32_t id;
  char padding[4];
  union {
    char bytes[64];
    uint32_t cluster[3];
    int programmatic;
  } value;
};

struct launch_config {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  void* stream;
  const launch_attribute* attributes;
  uint32_t attribute_count;
};

}  // namespace

extern "C" {

// For the test.
void stub_reset(int major, int minor) {
  lock guard(the_mutex);
  // What is left of the machine before is left: handles of it may still be let go.
  the_machine = new machine;
  the_machine->major = major;
  the_machine->minor = minor;
}
void stub_fail_next(const char* call) {
  lock guard(the_mutex);
  the_machine->failing = call;
}
size_t stub_violations(char* text, size_t bytes) {
  lock guard(the_mutex);
  const std::string& all = the_machine->violations;
  const size_t count = all.size() < bytes ? all.size() : bytes;
  std::memcpy(text, all.data(), count);
  the_machine->violations.clear();
  return count;
}
size_t stub_launches(launch_record* records, size_t most) {
  lock guard(the_mutex);
  const std::vector<launch_record>& all = the_machine->launches;
  const size_t count = all.size() < most ? all.size() : most;
  std::memcpy(records, all.data(), count * sizeof(launch_record));
  the_machine->launches.clear();
  return count;
}
int stub_capture_mode() { return capture_mode; }
uint64_t stub_waits() {
  lock guard(the_mutex);
  return the_machine->waits;
}
size_t stub_allocations() {
  lock guard(the_mutex);
  return the_machine->memory.size();
}
// How far the memory reaches from an address on.
uint64_t stub_bytes_behind(uint64_t address) {
  lock guard(the_mutex);
  const allocation* a = find(address);
  return a == nullptr ? 0 : a->begin + a->bytes - address;
}

CUresult cuInit(unsigned) { return SUCCESS; }
CUresult cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? SUCCESS : 101;
}
CUresult cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &a_context;
  return SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, int attribute, int) {
  lock guard(the_mutex);
  switch (attribute) {
    case 16: *value = the_machine->multiprocessors; return SUCCESS;
    case 75: *value = the_machine->major; return SUCCESS;
    case 76: *value = the_machine->minor; return SUCCESS;
    case 115: *value = 0; return SUCCESS;  // memory pools: cudarc then allocates by cuMemAlloc
    default: return INVALID_VALUE;
  }
}
CUresult cuCtxGetCurrent(void** context) {
  *context = current;
  return SUCCESS;
}
CUresult cuCtxSetCurrent(void* context) {
  current = context;
  return SUCCESS;
}
CUresult cuCtxSynchronize() {
  lock guard(the_mutex);
  unsafe_in_capture("cuCtxSynchronize");
  for (const auto& [address, a] : the_machine->memory) {
    for (const operation& o : a.operations) merge(the_machine->completed, {{o.stream, o.number}});
  }
  return SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** text) {
  *text = "STUB_ERROR";
  return SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "an error of the stub";
  return SUCCESS;
}

CUresult cuStreamCreate(void** handle, unsigned) {
  lock guard(the_mutex);
  stream* made;
  if (the_machine->destroyed.empty()) {
    made = new stream;
  } else {
    made = the_machine->destroyed.back();
    the_machine->destroyed.pop_back();
    *made = stream();
  }
  made->name = the_machine->next_name++;
  *handle = made;
  return SUCCESS;
}
// As the driver may, it gives the next stream the handle.
CUresult cuStreamDestroy_v2(void* handle) {
  lock guard(the_mutex);
  the_machine->destroyed.push_back(static_cast<stream*>(handle));
  return SUCCESS;
}
CUresult cuStreamSynchronize(void* handle) {
  lock guard(the_mutex);
  unsafe_in_capture("cuStreamSynchronize");
  stream& s = of(handle);
  if (s.captured != nullptr) {
    violation("waited for a stream that is captured");
    return INVALID_VALUE;
  }
  merge(the_machine->completed, s.clock);
  return SUCCESS;
}
CUresult cuStreamWaitEvent(void* handle, void* waited, unsigned) {
  lock guard(the_mutex);
  ++the_machine->waits;
  merge(of(handle).clock, static_cast<event*>(waited)->clock);
  return SUCCESS;
}
CUresult cuStreamIsCapturing(void* handle, int* status) {
  lock guard(the_mutex);
  *status = of(handle).captured == nullptr ? 0 : 1;
  return SUCCESS;
}
CUresult cuStreamBeginCapture_v2(void* handle, int) {
  lock guard(the_mutex);
  of(handle).captured = new graph;
  ++the_machine->captures;
  return SUCCESS;
}
CUresult cuStreamEndCapture(void* handle, void** made) {
  lock guard(the_mutex);
  *made = of(handle).captured;
  of(handle).captured = nullptr;
  --the_machine->captures;
  return SUCCESS;
}
// Whether a stream may still read or write memory that the host is about to.
int stub_is_in_use(uint64_t address, uint64_t bytes) {
  lock guard(the_mutex);
  const allocation* a = find(address);
  if (a == nullptr) return 0;
  for (const operation& other : a->operations) {
    const bool is_apart = other.end <= address || address + bytes <= other.begin;
    if (!is_apart && number_in(the_machine->completed, other.stream) < other.number) return 1;
  }
  return 0;
}

CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(void** instance, void* handle, unsigned long long) {
  lock guard(the_mutex);
  *instance = handle;
  the_machine->graphs.push_back(static_cast<graph*>(handle));
  return SUCCESS;
}
CUresult cuGraphLaunch(void* instance, void* handle) {
  lock guard(the_mutex);
  for (launch_record record : static_cast<graph*>(instance)->launches) run(of(handle), record, nullptr);
  return SUCCESS;
}
CUresult cuGraphExecDestroy(void* instance) {
  lock guard(the_mutex);
  std::vector<graph*> others;
  for (graph* other : the_machine->graphs) {
    if (other != instance) others.push_back(other);
  }
  the_machine->graphs = others;
  return SUCCESS;
}
CUresult cuGraphDestroy(void*) { return SUCCESS; }

CUresult cuEventCreate(void** handle, unsigned) {
  *handle = new event;
  return SUCCESS;
}
CUresult cuEventDestroy_v2(void* handle) {
  delete static_cast<event*>(handle);
  return SUCCESS;
}
CUresult cuEventRecord(void* handle, void* recorded) {
  lock guard(the_mutex);
  if (of(recorded).captured == nullptr) static_cast<event*>(handle)->clock = of(recorded).clock;
  return SUCCESS;
}
CUresult cuEventSynchronize(void* handle) {
  lock guard(the_mutex);
  merge(the_machine->completed, static_cast<event*>(handle)->clock);
  return SUCCESS;
}
CUresult cuEventElapsedTime_v2(float*, void*, void*) { return INVALID_VALUE; }

CUresult cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  lock guard(the_mutex);
  unsafe_in_capture("cuMemAlloc");
  return fails("cuMemAlloc") ? OUT_OF_MEMORY : allocate(address, bytes);
}
// Its presence is asked for; without memory pools nobody calls it.
CUresult cuMemAllocAsync(uint64_t*, size_t, void*) { return INVALID_VALUE; }
CUresult cuMemFree_v2(uint64_t address) {
  lock guard(the_mutex);
  unsafe_in_capture("cuMemFree");
  return release(address);
}
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t(1) << 40;
  return SUCCESS;
}
CUresult cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void* handle) {
  lock guard(the_mutex);
  if (fails("cuMemsetD8Async")) return INVALID_VALUE;
  stream& s = of(handle);
  if (s.captured != nullptr) return SUCCESS;
  touch(s, begin(s), address, bytes, true, "cuMemsetD8Async");
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return SUCCESS;
}
// What is copied from pinned memory, or to it, is read and written in the order of the stream, too.
CUresult cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* handle) {
  lock guard(the_mutex);
  if (fails("cuMemcpyHtoDAsync")) return INVALID_VALUE;
  stream& s = of(handle);
  const uint64_t number = begin(s);
  touch(s, number, to, bytes, true, "cuMemcpyHtoDAsync");
  const uint64_t host = reinterpret_cast<uint64_t>(from);
  if (find(host) != nullptr) touch(s, number, host, bytes, false, "cuMemcpyHtoDAsync from the host");
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return SUCCESS;
}
CUresult cuMemcpyPeerAsync(uint64_t to, void*, uint64_t from, void*, size_t bytes, void* handle) {
  lock guard(the_mutex);
  if (fails("cuMemcpyPeerAsync")) return INVALID_VALUE;
  stream& s = of(handle);
  const uint64_t number = begin(s);
  touch(s, number, from, bytes, false, "cuMemcpyPeerAsync, from");
  touch(s, number, to, bytes, true, "cuMemcpyPeerAsync, to");
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* handle) {
  lock guard(the_mutex);
  if (fails("cuMemcpyDtoHAsync")) return INVALID_VALUE;
  stream& s = of(handle);
  const uint64_t number = begin(s);
  touch(s, number, from, bytes, false, "cuMemcpyDtoHAsync");
  const uint64_t host = reinterpret_cast<uint64_t>(to);
  if (find(host) != nullptr) touch(s, number, host, bytes, true, "cuMemcpyDtoHAsync to the host");
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return SUCCESS;
}
CUresult cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  lock guard(the_mutex);
  stream& s = the_machine->null_stream;
  touch(s, begin(s), to, bytes, true, "cuMemcpyHtoD");
  merge(the_machine->completed, s.clock);
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return SUCCESS;
}
CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  lock guard(the_mutex);
  unsafe_in_capture("cuMemHostAlloc");
  return fails("cuMemHostAlloc") ? OUT_OF_MEMORY : allocate(reinterpret_cast<uint64_t*>(address), bytes);
}
CUresult cuMemFreeHost(void* address) {
  lock guard(the_mutex);
  unsafe_in_capture("cuMemFreeHost");
  return release(reinterpret_cast<uint64_t>(address));
}

CUresult cuModuleLoadData(void** handle, const void* image) {
  lock guard(the_mutex);
  unsafe_in_capture("cuModuleLoadData");
  if (fails("cuModuleLoadData")) return NOT_FOUND;
  // An ELF file of 64 bits ends behind the table of its sections, or of its segments: e_phoff, e_shoff, sizes, counts.
  const auto* bytes = static_cast<const unsigned char*>(image);
  uint64_t tables[2];
  uint16_t sizes[4];
  std::memcpy(tables, bytes + 32, 16);
  std::memcpy(sizes, bytes + 54, 8);
  const uint64_t ends[2] = {tables[0] + uint64_t(sizes[0]) * sizes[1], tables[1] + uint64_t(sizes[2]) * sizes[3]};
  auto* made = new module;
  made->image.assign(reinterpret_cast<const char*>(bytes), ends[0] > ends[1] ? ends[0] : ends[1]);
  *handle = made;
  return SUCCESS;
}
// Kept: what was launched from it is looked at later.
CUresult cuModuleUnload(void*) { return SUCCESS; }
CUresult cuModuleGetFunction(void** handle, void* of, const char* name) {
  if (std::strcmp(name, "lookback_entry") != 0) return NOT_FOUND;
  auto* made = new function;
  made->of = static_cast<module*>(of);
  *handle = made;
  return SUCCESS;
}
CUresult cuFuncSetAttribute(void* handle, int attribute, int value) {
  lock guard(the_mutex);
  auto* f = static_cast<function*>(handle);
  if (attribute == 8) f->allowed_shared_bytes = uint64_t(value);
  if (attribute == 14) f->allows_large_clusters = value != 0;
  return attribute == 8 || attribute == 14 ? SUCCESS : INVALID_VALUE;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* handle, int, size_t shared, unsigned) {
  lock guard(the_mutex);
  *blocks = the_machine->resident_blocks;
  return shared <= static_cast<function*>(handle)->allowed_shared_bytes ? SUCCESS : INVALID_VALUE;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* handle, int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, shared, 0);
}
CUresult cuOccupancyMaxPotentialClusterSize(int* blocks, void* handle, const void*) {
  lock guard(the_mutex);
  *blocks = static_cast<function*>(handle)->allows_large_clusters ? the_machine->cluster_blocks : 8;
  return SUCCESS;
}

CUresult cuLaunchKernelEx(const launch_config* config, void* handle, void** arguments, void**) {
  lock guard(the_mutex);
  if (current == nullptr) violation("cuLaunchKernelEx without a current context");
  if (fails("cuLaunchKernelEx")) return LAUNCH_FAILED;
  const auto* f = static_cast<function*>(handle);
  stream& s = of(config->stream);
  launch_record record = {};
  std::memcpy(&record.launch, arguments[0], sizeof(record.launch));
  record.stream = s.name;
  record.image = f->of->image.data();
  record.image_bytes = f->of->image.size();
  record.blocks = config->grid[0];
  record.threads = config->block[0];
  record.shared_bytes = config->shared_bytes;
  record.is_captured = s.captured != nullptr;
  for (uint32_t i = 0; i < config->attribute_count; ++i) {
    const launch_attribute& attribute = config->attributes[i];
    if (attribute.id == 4) {
      record.cluster_blocks = attribute.value.cluster[0];
    } else if (attribute.id == 6) {
      record.is_programmatic = uint32_t(attribute.value.programmatic);
    } else {
      violation("an attribute of a launch that is not known here");
    }
  }
  const bool is_one_dimensional =
      config->grid[1] == 1 && config->grid[2] == 1 && config->block[1] == 1 && config->block[2] == 1;
  if (!is_one_dimensional || record.blocks == 0 || record.threads == 0) violation("a grid that is none");
  if (record.shared_bytes > f->allowed_shared_bytes) violation("more shared memory than the kernel was allowed");
  if (record.is_programmatic != 0 && the_machine->major < 9) violation("a programmatic launch on a GPU that has none");
  if (record.cluster_blocks != 0) {
    if (the_machine->major < 9) violation("a cluster on a GPU that has none");
    if (record.blocks % record.cluster_blocks != 0) violation("a grid of broken clusters");
    if (record.cluster_blocks > 8 && !f->allows_large_clusters) violation("a cluster that the kernel was not allowed");
    if (record.cluster_blocks > uint32_t(the_machine->cluster_blocks)) violation("a cluster that does not fit");
  }
  run(s, record, s.captured);
  if (s.captured != nullptr) s.captured->launches.push_back(record);
  the_machine->launches.push_back(record);
  return SUCCESS;
}

}  // extern "C"
