// Stands before everything else: an older standard fails with this line first.
#pragma once
#if __cplusplus < 202002L
#error "Burin needs C++20: compile with -std=c++20 or later"
#endif
