//! System tests: real brokers, real processes, loopback only. One binary, one file per promise kept.
//!
//! A nats-server is found or fetched by `tools/get-nats-server`. Where that cannot be done a test says so in one line and
//! passes, unless `QM_REQUIRE_ALL=1` asks for everything.
#![cfg(test)]

mod bench_run;
mod canary_debug;
mod canary_forms;
mod canary_panic;
mod canary_run;
mod cluster_brokers;
mod cluster_control;
mod cluster_election;
mod cluster_lock;
mod cluster_shared;
mod cluster_site;
mod control_cli;
mod control_creds;
mod control_flood;
mod control_pause;
mod control_schema;
mod control_service;
mod control_site;
mod control_verbs;
mod emulate_client;
mod emulate_demo;
mod emulate_fleet;
mod emulate_run;
mod fault_brokers;
mod fault_child;
mod fault_clock;
mod fault_cluster;
mod fault_everything;
mod fault_helpers;
mod fault_record;
mod fault_stage;
mod fault_verdict;
mod helper_first_process;
mod helper_provider_ends;
mod helper_provider_runs;
mod helper_provider_site;
mod hostile_field;
mod hostile_policies;
mod hostile_requests;
mod hostile_servers;
mod support;

mod journal_files;
mod journal_kill;
mod journal_pause;
mod link_connects;
mod link_election;
mod link_kv;
mod link_reconnects;
mod link_replies;
mod log_lines;
mod mesh_demo;
mod mesh_verbs;
mod packaging;
mod prove_bounces;
mod prove_flood;
mod prove_signals;
mod prove_site;
mod prove_supervision;
mod steps_builtin;
mod steps_secret;
mod steps_site;
mod steps_undecided;
mod steps_undo;
mod steps_waiting;
mod support_works;
mod watch_page;
mod watch_pages;
mod watch_tls;
