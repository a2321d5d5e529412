# Runs an example, and compares its output with the lines below "// Prints:" in its source, in which "..." stands for any text
# of a line, and a line of "..." alone for any lines; exit 77 means that it is skipped, as without a GPU: cmake -DPROGRAM=... -DSOURCE=... -P run.cmake
file(READ "${SOURCE}" source)
if(NOT source MATCHES "\n// Prints:\n((//   [^\n]*\n)+)")
  message(FATAL_ERROR "${SOURCE} does not say what it prints")
endif()
string(REGEX REPLACE "(^|\n)//   " "\\1" expected "${CMAKE_MATCH_1}")

# The text as a regular expression: CMake knows no quotation of a whole text.
string(REGEX REPLACE "([][+.*?^$()|\\])" "\\\\\\1" pattern "${expected}")
string(REGEX REPLACE "(^|\n)\\\\[.]\\\\[.]\\\\[.]\n" "\\1(.*\n)?" pattern "${pattern}")
string(REPLACE "\\.\\.\\." "[^\n]*" pattern "${pattern}")

execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(status EQUAL 77)
  message("example skipped: ${error}")
  return()
elseif(NOT status EQUAL 0)
  message(FATAL_ERROR "exit ${status}: ${PROGRAM}\n${output}${error}")
elseif(NOT output MATCHES "^${pattern}$")
  message(FATAL_ERROR "${PROGRAM} printed\n${output}${error}and not, as ${SOURCE} says,\n${expected}")
endif()
message("${output}")
