// Measures the cost of the session database: calls per second of the builtin `echo` over frames
// without telemetry, with mode "batch" and with mode "full", alternating in one run.
//
// Starts the program in the variable BULKHEAD with compartments, so that a separate process writes
// the records, on one processor, and calls it from another processor. Arguments: seconds per cell
// (default 3), repetitions (default 3) and clients (default 16). Prints the medians, their ratios
// to "off", and the measured value of the goal: "batch" must reach at least 90 % of "off".
//
// Records and calls share one processor here, so the difference is the processor time of a record.
// With more processors, records would be written on another one.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "framed_measure.hpp"

namespace {

using namespace framed;

struct Mode {
  const char *name, *profile;
};
constexpr Mode modes[] = {
    {"off", ""},
    {"batch", "[telemetry.records]\nplugin = \"telemetry-sqlite\"\n"},
    {"batch, no texts", "[telemetry.records]\nplugin = \"telemetry-sqlite\"\ntexts = false\n"},
    {"full", "[telemetry.records]\nplugin = \"telemetry-sqlite\"\nmode = \"full\"\n"}};

void run(const char *program, double seconds, int repetitions, int clients) {
  pin(load_cpu);
  std::vector<Cell> cells[std::size(modes)];
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t i = 0; i < std::size(modes); ++i) {
      const Folder folder;
      Setup setup;
      setup.compartments = true;
      setup.more = modes[i].profile;
      const Gateway gateway(program, folder.path(), setup);
      cells[i].push_back(measure<FramedClient>(gateway, clients, seconds));
    }
  }
  std::printf("%-16s  %9s  %6s  %8s  %8s\n", "records", "calls/s", "of off", "p50 us", "p99 us");
  const double off = median_of(cells[0]).per_second;
  for (std::size_t i = 0; i < std::size(modes); ++i) {
    const Cell cell = median_of(cells[i]);
    std::printf("%-16s  %9.0f  %5.0f%%  %8.0f  %8.0f\n", modes[i].name, cell.per_second,
                100 * cell.per_second / off, cell.p50_us, cell.p99_us);
  }
  const double batch = median_of(cells[1]).per_second / off;
  std::printf("\nbatch: %.0f %% of off (goal 90 %%): %s\n", 100 * batch,
              batch >= 0.9 ? "met" : "MISSED");
}

}  // namespace

int main(int argc, char **argv) {
  const char *program = std::getenv("BULKHEAD");
  if (program == nullptr) {
    std::fprintf(stderr, "set BULKHEAD to the program\n");
    return 2;
  }
  try {
    run(program, argc > 1 ? std::atof(argv[1]) : 3, argc > 2 ? std::atoi(argv[2]) : 3,
        argc > 3 ? std::atoi(argv[3]) : 16);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "micro_records: %s\n", error.what());
    return 1;
  }
}
