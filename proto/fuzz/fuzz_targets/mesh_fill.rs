#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quartermaster_proto::fuzzing::mesh_fill(bytes));
