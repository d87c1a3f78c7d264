// The main() of test programs, where Catch2 is version 2. Catch2 3 has it in a library.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
