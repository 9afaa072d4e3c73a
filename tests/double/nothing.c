/* nothing (double): a shared library needs a file of its own; all that it holds comes from double_cuda.
 *
 * Thread: none. */
typedef int nothing;
