//! The helper contract, sentence by sentence, with real processes: what a helper gets, what it may do, and how each way of
//! going wrong is told.

#[cfg(test)]
mod helper_support;

use std::fs;
use std::time::Duration;

use helper_support::{Seen, alive_in, eventually, script, write_program};
use quartermaster_actors::helper::{Ending, HelperError, HelperSettings, Orphans, Retry, execute};

const SHORT: Duration = Duration::from_secs(3);
/// Far above what any of these runs takes, far below the minutes their helpers sleep.
const SOON: Duration = Duration::from_mins(1);

const ANSWER: &str = r#"echo '{"defer":true,"msg":"not yet"}'"#;

#[cfg(test)]
#[track_caller]
fn answered(seen: &Seen) {
    let reply = seen.result.as_ref().unwrap_or_else(|_| panic!("{}", seen.error()));
    assert!(reply.defer);
    assert_eq!(reply.msg, "not yet");
}

#[tokio::test]
async fn input_arrives_on_stdin_whole_and_ends() {
    let script = script(&format!("cat > $HELPER_DIR/got; {ANSWER}"));
    let input: Vec<u8> = (0..3_000_000u32).map(|n| b'a' + u8::try_from(n % 23).unwrap()).collect();
    answered(&script.run(&input).await);
    assert_eq!(fs::read(script.file("got")).unwrap(), input);
}

#[tokio::test]
async fn input_and_output_beyond_the_pipe_buffer_do_not_deadlock() {
    // It writes 1 MB before it reads the first byte.
    let script = script(
        r#"printf '{"defer":true,"msg":"not yet","x":"'; head -c 1000000 /dev/zero | tr '\0' x; printf '"}'; cat >/dev/null"#,
    );
    answered(&script.run(&vec![b' '; 1_000_000]).await);
}

#[tokio::test]
async fn a_helper_that_never_reads_its_input_is_no_error() {
    answered(&script(ANSWER).run(&vec![b' '; 1_000_000]).await);
    answered(&script(&format!("exec <&-; {ANSWER}")).run(&vec![b' '; 1_000_000]).await);
}

#[tokio::test]
async fn arguments_reach_it_as_split_and_no_shell_sees_them() {
    let mut script = script(&format!(r#"for a; do echo "$a"; done > $HELPER_DIR/got; {ANSWER}"#));
    script.settings.arguments = ["--site", "a b", "$HOME;`id`", "", "*"].map(String::from).to_vec();
    answered(&script.run(b"{}").await);
    assert_eq!(fs::read_to_string(script.file("got")).unwrap(), "--site\na b\n$HOME;`id`\n\n*\n");
}

#[tokio::test]
async fn a_program_path_with_a_space_works() {
    let mut script = script("");
    let path = script.file("my helper");
    write_program(&path, &format!("#!/bin/sh\n{ANSWER}\n"));
    script.settings.program = path.to_str().unwrap().to_owned();
    answered(&script.run(b"{}").await);
}

#[tokio::test]
async fn the_working_directory_is_inherited() {
    let script = script(&format!("pwd > $HELPER_DIR/got; {ANSWER}"));
    answered(&script.run(b"{}").await);
    let ours = std::env::current_dir().unwrap();
    assert_eq!(fs::read_to_string(script.file("got")).unwrap().trim_end(), ours.to_str().unwrap());
}

#[tokio::test]
async fn only_standard_input_carries_secrets() {
    let script = script(&format!(
        "cat /proc/$$/cmdline /proc/$$/environ > $HELPER_DIR/seen; ls /proc/$$/fd > $HELPER_DIR/fds; cat > /dev/null; {ANSWER}"
    ));
    answered(&script.run(b"{\"jwt\":{\"cht\":\"s3cret-token\"}}").await);
    let seen = String::from_utf8_lossy(&fs::read(script.file("seen")).unwrap()).into_owned();
    assert!(!seen.contains("s3cret-token"));
    // Cargo gives its tests plenty of variables; none is on the list.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !seen.contains("CARGO"));
    let names: Vec<&str> =
        seen.split('\0').filter_map(|entry| entry.split_once('=')).map(|(name, _)| name).collect();
    let allowed =
        ["PATH", "LANG", "HOME", "TZ", "HELPER_DIR", "QUARTERMASTER_RUN", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    // No descriptor of ours leaks either: the shell itself keeps its script open as 10 or above.
    let fds = fs::read_to_string(script.file("fds")).unwrap();
    let low: Vec<&str> = fds.lines().filter(|fd| fd.parse::<u32>().is_ok_and(|fd| fd < 10)).collect();
    assert_eq!(low, ["0", "1", "2"]);
}

#[tokio::test]
async fn each_server_gets_a_process_of_its_own() {
    let script = script(&format!("echo $$ >> $HELPER_DIR/pids; {ANSWER}"));
    answered(&script.run(b"{}").await);
    answered(&script.run(b"{}").await);
    let pids = fs::read_to_string(script.file("pids")).unwrap();
    let pids: std::collections::BTreeSet<&str> = pids.lines().collect();
    assert_eq!(pids.len(), 2);
}

#[tokio::test]
async fn zero_bytes_is_an_error() {
    let seen = script("cat >/dev/null; echo looked but found nothing >&2").run(b"{}").await;
    assert!(seen.error().starts_with("zero bytes received from helper `/"), "{}", seen.error());
    assert!(seen.error().ends_with("; its last words: looked but found nothing"), "{}", seen.error());
}

#[tokio::test]
async fn the_exit_status_counts_although_the_reply_is_good() {
    let seen = script(&format!("{ANSWER}; echo no database >&2; exit 3")).run(b"{}").await;
    assert!(seen.error().ends_with("exited with status 3; its last words: no database"), "{}", seen.error());
}

#[tokio::test]
async fn a_signal_is_named() {
    let seen = script(&format!("{ANSWER}; kill -SEGV $$")).run(b"{}").await;
    assert!(seen.error().ends_with("was killed by signal 11"), "{}", seen.error());
}

#[tokio::test]
async fn log_text_around_the_json_is_refused_as_a_whole() {
    for text in [
        "echo starting up; echo '{}'",
        "echo '{}'; echo done",
        "echo '{}{}'",
        "echo",
        "printf '   '",
        "printf '[]'",
    ] {
        let seen = script(text).run(b"{}").await;
        let error = seen.result.expect_err(text);
        assert_eq!(error.retry(), Retry::Later, "{text}");
        assert!(matches!(error, HelperError::Reply { .. }), "{text}: {}", error.chain());
    }
}

#[tokio::test]
async fn a_missing_or_forbidden_program_is_named_with_the_cause() {
    let mut script = script("");
    script.settings.program = script.file("absent").to_str().unwrap().to_owned();
    let error = script.run(b"{}").await.error();
    assert!(error.contains("/absent`: No such file"), "{error}");
    let plain = script.file("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    script.settings.program = plain.to_str().unwrap().to_owned();
    let error = script.run(b"{}").await.error();
    assert!(error.contains("/plain`: Permission denied"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_just_being_replaced_is_tried_again() {
    let script = script("");
    let path = script.file("busy");
    fs::copy("/bin/true", &path).unwrap();
    let mut settings = script.settings.clone();
    settings.program = path.to_str().unwrap().to_owned();
    let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let orphans = Orphans::unadopted();
    let run = execute(&settings, &orphans, b"{}", |_| {});
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(writer);
    };
    let (run, ()) = tokio::join!(run, release);
    assert!(run.unwrap().status.unwrap().success());
    // And the error is the real one when it stays busy.
    let _writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    settings.timeout = SHORT;
    let error = execute(&settings, &orphans, b"{}", |_| {}).await.unwrap_err().chain();
    assert!(error.contains("Text file busy"), "{error}");
}

#[tokio::test]
async fn a_sleeping_helper_is_stopped_at_the_deadline_with_its_whole_group() {
    let script = script("echo about to sleep >&2; sleep 600 & sleep 600 & sleep 600").within(SHORT);
    let seen = script.run(b"{}").await;
    assert!(
        seen.error().contains("did not finish within 3s; its last words: about to sleep"),
        "{}",
        seen.error()
    );
    assert!(seen.took >= SHORT && seen.took < SOON, "{:?}", seen.took);
    eventually("the group has gone", || alive_in(script.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn one_that_ignores_term_is_killed() {
    let script = script("trap '' TERM; while :; do sleep 600; done").within(SHORT);
    let seen = script.run(b"{}").await;
    assert!(matches!(seen.result, Err(HelperError::TimedOut { .. })), "{}", seen.error());
    assert!(seen.took >= SHORT + script.settings.grace && seen.took < SOON, "{:?}", seen.took);
    eventually("the group has gone", || alive_in(script.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn one_that_cleans_up_on_term_may() {
    let mut script =
        script("trap 'echo tidy > $HELPER_DIR/tidy; exit 0' TERM; sleep 600 & wait").within(SHORT);
    script.settings.grace = Duration::from_secs(20);
    let seen = script.run(b"{}").await;
    assert!(matches!(seen.result, Err(HelperError::TimedOut { .. })), "{}", seen.error());
    assert_eq!(fs::read_to_string(script.file("tidy")).unwrap(), "tidy\n");
}

#[tokio::test]
async fn a_stopped_helper_is_killed_too() {
    let script = script("kill -STOP $$").within(SHORT);
    let seen = script.run(b"{}").await;
    assert!(matches!(seen.result, Err(HelperError::TimedOut { .. })), "{}", seen.error());
    eventually("the group has gone", || alive_in(script.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_cannot_hold_the_run_and_the_reply_counts() {
    let script = script(&format!("sleep 600 & cat >/dev/null; {ANSWER}"));
    let seen = script.run(b"{}").await;
    answered(&seen);
    assert!(seen.took < SOON, "{:?}", seen.took);
    eventually("the grandchild has gone", || alive_in(script.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn the_reply_may_come_from_a_grandchild_that_outlives_the_helper() {
    // The peer reads to the end of the stream, so this works there.
    let script = script(&format!("(sleep 0.4; {ANSWER}) &"));
    answered(&script.run(b"{}").await);
}

#[tokio::test]
async fn a_silent_grandchild_holds_the_run_no_longer_than_the_deadline() {
    let script = script("sleep 600 & exit 0").within(SHORT);
    let seen = script.run(b"{}").await;
    assert!(seen.error().starts_with("zero bytes received"), "{}", seen.error());
    assert!(seen.took < SOON, "{:?}", seen.took);
    eventually("the grandchild has gone", || alive_in(script.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn a_flood_on_stderr_leaves_the_reply_alone_and_is_bounded() {
    let mut script = script(&format!(
        "head -c 300000 /dev/zero | tr '\\0' x >&2; head -c 5000000 /dev/zero | tr '\\0' '\\n' >&2; yes noise | head -c 5000000 >&2; printf '\\nthe end\\n' >&2; {ANSWER}"
    ));
    // Millions of lines, which a busy machine may take its time for.
    script.settings.timeout = Duration::from_mins(1);
    let seen = script.run(b"{}").await;
    answered(&seen);
    assert!(seen.said.iter().map(String::len).sum::<usize>() < 80_000);
    assert!(
        seen.said[0].starts_with("xxx") && seen.said[0].contains("bytes more"),
        "{}",
        &seen.said[0][..40]
    );
    assert_eq!(seen.execution.unwrap().stderr.last().unwrap(), "the end");
}

#[tokio::test]
async fn stderr_is_reported_line_by_line_and_kept_for_the_error() {
    let seen =
        script("echo one >&2; printf 'two\\rforged\\n' >&2; printf three >&2; exit 1").run(b"{}").await;
    assert_eq!(seen.said, ["one", "two\\u{d}forged", "three"]);
    assert_eq!(seen.result.unwrap_err().stderr(), ["one", "two\\u{d}forged", "three"]);
}

#[tokio::test]
async fn stdout_is_bounded() {
    let mut script = script("yes");
    script.settings.max_stdout = 100_000;
    let seen = script.run(b"{}").await;
    assert!(seen.error().contains("it wrote more than 100000 bytes to standard output"), "{}", seen.error());
    let execution = seen.execution.unwrap();
    assert_eq!(execution.ending, Ending::Overflowed);
    assert!(execution.stdout.len() <= 100_000);
    // What fits exactly is read.
    let mut script = self::script("printf '%50s'");
    script.settings.max_stdout = 50;
    assert!(matches!(script.run(b"{}").await.result, Err(HelperError::Reply { .. })));
}

#[tokio::test]
async fn no_error_repeats_what_the_helper_wrote_to_stdout() {
    for text in [
        "echo 'hunter2hunter2'",
        "echo '{\"key\":\"hunter2hunter2\"} x'",
        "echo '{\"key\":\"hunter2hunter2\"}'; exit 1",
        "echo hunter2hunter2; sleep 60",
    ] {
        let seen = script(text).within(SHORT).run(b"{}").await;
        let error = seen.result.expect_err(text);
        assert!(!format!("{} {error:?}", error.chain()).contains("hunter2hunter2"), "{text}: {error:?}");
    }
}

#[tokio::test]
async fn letting_go_of_a_run_stops_it() {
    let script = script("touch $HELPER_DIR/started; sleep 600 & sleep 600");
    let started = script.file("started");
    let orphans = Orphans::unadopted();
    tokio::select! {
        run = execute(&script.settings, &orphans, b"{}", |_| {}) => panic!("{run:?}"),
        () = eventually("it has started", || started.exists()) => {}
    }
    eventually("the group has gone", || alive_in(script.dir.path()).is_empty()).await;
    eventually("it was reaped", || helper_support::defunct_children() == 0).await;
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let settings = HelperSettings::new("h", Vec::new());
    assert_eq!(settings.timeout, Duration::from_secs(10));
    assert_eq!(settings.grace, Duration::from_secs(1));
    assert_eq!(settings.max_stdout, 16 * 1024 * 1024);
}
