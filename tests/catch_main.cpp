// Defines main() for test programs with Catch2 2. Catch2 3 provides it in a library.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
