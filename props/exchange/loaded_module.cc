// A shared library for the suites of this folder to load: it holds nothing but room, in which a file can say that functions are.
extern "C" const char exchange_module_room[4096] = {1};
