// Sets the sanitizer options and suppressions of every test. This whole file is linked into each
// test binary, because ThreadSanitizer reads the options from the executable itself. The
// suppressions are needed because Debian's gRPC, Abseil and protobuf are not instrumented.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc.so\nrace:libgrpc++.so\nrace:libgpr.so\nrace:libabsl_\nrace:libprotobuf.so\n"
         "race:^grpc::\nrace:^google::protobuf::\nrace:libcpprest.so\n";
}
// intercept_send=0: the sanitizers check the bytes of sendmsg only after the call. At that time,
// the peer may already have answered, and the sender may have freed or changed these bytes.
extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:second_deadlock_stack=1:intercept_send=0";
}
extern "C" const char* __asan_default_options() {
  return "intercept_send=0";
}
