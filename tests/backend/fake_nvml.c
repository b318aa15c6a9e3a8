/* A management library (NVML) whose cards are described by the file that FAKE_NVML_FILE names: one
 * `key=value` a line, read again at each call, so that a test changes them while a program runs.
 * Without the file: one healthy card.
 *
 *   init          the code that nvmlInit_v2 returns; `hang` never returns
 *   driver        version of the driver;  library  of this library
 *   devices       how many cards; alike but for their UUID, their place on the bus and `KEY@N`
 *   handle        the code that asking for a card returns; `hang` never returns
 *   read          the code that every reading of a card returns
 *   name, memory_used, memory_total, utilization, temperature, power (milliwatts), throttle,
 *   ecc, compute_mode
 *                 of a card; an empty value: not supported. `ecc@1`: of card 1 alone
 *   processes     comma-separated process ids on the card
 *   xids          comma-separated Xids so far; a watcher gets those added after it began
 *   events        the code that registering for Xids returns
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, TIMEOUT = 10, TEXT_BYTES = 512 };

/* Copies the value of a key; returns 0 if the file does not have it. */
static int Value(const char* key, char* value) {
  const char* path = getenv("FAKE_NVML_FILE");
  FILE* file = path != NULL ? fopen(path, "r") : NULL;
  if (file == NULL) return 0;
  char line[TEXT_BYTES];
  const size_t key_bytes = strlen(key);
  int found = 0;
  while (!found && fgets(line, sizeof(line), file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, key, key_bytes) != 0 || line[key_bytes] != '=') continue;
    strcpy(value, line + key_bytes + 1);
    found = 1;
  }
  fclose(file);
  return found;
}

static int Code(const char* key) {
  char value[TEXT_BYTES];
  if (!Value(key, value)) return SUCCESS;
  if (strcmp(value, "hang") == 0) {
    for (;;) pause();
  }
  return atoi(value);
}

static int Text(const char* key, const char* usual, char* text, unsigned bytes) {
  char value[TEXT_BYTES];
  snprintf(text, bytes, "%s", Value(key, value) ? value : usual);
  return SUCCESS;
}

/* A handle is the address of one of these. */
static char cards[16];
static unsigned ToIndex(const void* device) { return (unsigned)((const char*)device - cards); }

static int Number(const void* device, const char* key, unsigned long long usual,
                  unsigned long long* number) {
  const int code = Code("read");
  if (code != SUCCESS) return code;
  char own_key[TEXT_BYTES];
  char value[TEXT_BYTES];
  snprintf(own_key, sizeof(own_key), "%s@%u", key, ToIndex(device));
  *number = usual;
  if (!Value(own_key, value) && !Value(key, value)) return SUCCESS;
  if (value[0] == '\0') return NOT_SUPPORTED;
  *number = strtoull(value, NULL, 0);
  return SUCCESS;
}

static int SmallNumber(const void* device, const char* key, unsigned usual, unsigned* number) {
  unsigned long long wide = 0;
  const int code = Number(device, key, usual, &wide);
  *number = (unsigned)wide;
  return code;
}

static unsigned DeviceCount(void) {
  char value[TEXT_BYTES];
  return Value("devices", value) ? (unsigned)atoi(value) : 1;
}

int nvmlInit_v2(void) { return Code("init"); }
int nvmlShutdown(void) { return SUCCESS; }

const char* nvmlErrorString(int code) {
  switch (code) {
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 6:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    case 16:
      return "GPU requires reset";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  return Text("driver", "570.133.20", text, bytes);
}
int nvmlSystemGetNVMLVersion(char* text, unsigned bytes) {
  char version[TEXT_BYTES];
  Text("library", "570.133.20", version, sizeof(version));
  snprintf(text, bytes, "12.%s", version);
  return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = DeviceCount();
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  const int code = Code("handle");
  if (code != SUCCESS) return code;
  if (index >= DeviceCount()) return INVALID_ARGUMENT;
  *device = &cards[index];
  return SUCCESS;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  const char* bus = strchr(bus_id, ':');
  const unsigned number = bus != NULL ? (unsigned)strtoul(bus + 1, NULL, 16) : 0;
  if (number == 0 || number > DeviceCount()) return 6;
  return nvmlDeviceGetHandleByIndex_v2(number - 1, device);
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = ToIndex(device);
  return SUCCESS;
}

int nvmlDeviceGetName(void* device, char* text, unsigned bytes) {
  return Text("name", "NVIDIA H200", text, bytes);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  snprintf(text, bytes, "GPU-00000000-0000-0000-0000-%012u", ToIndex(device));
  return SUCCESS;
}

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void* device, struct PciInfo* info) {
  memset(info, 0, sizeof(*info));
  info->bus = ToIndex(device) + 1;
  snprintf(info->bus_id, sizeof(info->bus_id), "00000000:%02X:00.0", info->bus);
  return SUCCESS;
}

struct Memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* device, struct Memory* memory) {
  const int code = Number(device, "memory_total", 139ULL << 30, &memory->total);
  if (code != SUCCESS) return code;
  memory->free = 0;
  return Number(device, "memory_used", 1ULL << 30, &memory->used);
}

struct Utilization {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, struct Utilization* utilization) {
  utilization->memory = 0;
  return SmallNumber(device, "utilization", 0, &utilization->gpu);
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  return sensor != 0 ? INVALID_ARGUMENT : SmallNumber(device, "temperature", 40, celsius);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return SmallNumber(device, "power", 80000, milliwatts);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return Number(device, "throttle", 1, reasons);
}
int nvmlDeviceGetTotalEccErrors(void* device, int error_type, int counter_type,
                                unsigned long long* count) {
  if (error_type != 1 || counter_type != 0) return INVALID_ARGUMENT;
  return Number(device, "ecc", 0, count);
}
int nvmlDeviceGetComputeMode(void* device, unsigned* mode) {
  return SmallNumber(device, "compute_mode", 0, mode);
}

struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance_id, compute_instance_id;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                            struct Process* processes) {
  char value[TEXT_BYTES] = "";
  const unsigned capacity = *count;
  *count = 0;
  char own_key[TEXT_BYTES];
  snprintf(own_key, sizeof(own_key), "processes@%u", ToIndex(device));
  if (!Value(own_key, value) && !Value("processes", value)) return SUCCESS;
  for (char* pid = strtok(value, ","); pid != NULL && *count < capacity; pid = strtok(NULL, ",")) {
    memset(&processes[*count], 0, sizeof(processes[*count]));
    processes[(*count)++].pid = (unsigned)atoi(pid);
  }
  return SUCCESS;
}

/* How many entries of `xids` a watcher has seen. */
struct EventSet {
  unsigned seen;
};
struct EventData {
  void* device;
  unsigned long long event_type, event_data;
  unsigned gpu_instance_id, compute_instance_id;
};

/* Returns the number of Xids, and the one at an index if there is one. */
static unsigned Xids(unsigned wanted, unsigned long long* xid) {
  char value[TEXT_BYTES];
  unsigned count = 0;
  if (!Value("xids", value)) return 0;
  for (char* text = strtok(value, ","); text != NULL; text = strtok(NULL, ",")) {
    if (count++ == wanted) *xid = strtoull(text, NULL, 10);
  }
  return count;
}

int nvmlEventSetCreate(void** set) {
  struct EventSet* made = malloc(sizeof(*made));
  unsigned long long ignored = 0;
  made->seen = Xids(0, &ignored);
  *set = made;
  return SUCCESS;
}
int nvmlEventSetFree(void* set) {
  free(set);
  return SUCCESS;
}
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  (void)set;
  if (types != 8) return INVALID_ARGUMENT;
  return Code("events");
}
int nvmlEventSetWait_v2(void* set, struct EventData* data, unsigned timeout_ms) {
  struct EventSet* events = set;
  memset(data, 0, sizeof(*data));
  for (unsigned waited_ms = 0;; ++waited_ms) {
    if (Xids(events->seen, &data->event_data) > events->seen) {
      ++events->seen;
      data->event_type = 8;
      return SUCCESS;
    }
    if (waited_ms >= timeout_ms) return TIMEOUT;
    usleep(1000);
  }
}
