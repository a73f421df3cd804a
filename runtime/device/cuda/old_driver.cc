// Simulates, for a test, the library of a driver older than CUDA 12, which lacks most functions.
extern "C" unsigned cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
