// Simulates an old version of NCCL, for a test. Most functions are missing.
extern "C" int ncclGetVersion(int* version) {
  *version = 21104;
  return 0;
}
