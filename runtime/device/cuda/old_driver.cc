// Simulates, in a test, the library of a driver that is older than CUDA 12: it lacks most
// functions.
extern "C" unsigned cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
