// Simulates the library of a driver older than CUDA 12, for a test. Most functions are missing.
extern "C" unsigned cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
