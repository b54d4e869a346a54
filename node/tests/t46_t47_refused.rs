//! T46: what the socket refuses. T47: targets that are not what they look like, and disks that are full.

#![cfg(test)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::symlink, net::UnixStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use quartermaster_proto::mesh::{
    fill::{Body, FileCode, Reply, RequestCode, Written},
    plan::Digest,
    report::Action,
};
use rustix::fs::{CWD, FileType, RenameFlags, mknodat};
use support::engine::{Engine, run_if_asked};

mod support;

const ENGINE: &str = "is_an_engine_where_it_is_started_as_one";
const OWNED: &str = r#""owner-at-runtime":"owned""#;

#[test]
fn is_an_engine_where_it_is_started_as_one() {
    run_if_asked();
}

fn refusal(written: &Written) -> (FileCode, &str) {
    let err = written.files[0].err.as_ref().unwrap_or_else(|| panic!("{written:?}"));
    (err.code, &err.reason)
}

fn request_code(body: Body) -> RequestCode {
    match body {
        Body::Failed(failure) => failure.code,
        other => panic!("{other:?}"),
    }
}

/// Everything below a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn t46_only_what_the_declaration_names_is_written() {
    let mut engine = Engine::new();
    let plan = engine.declare("forge", &engine.file("a", OWNED));
    let other = engine.declare("other", &engine.file("b", OWNED));
    engine.start(ENGINE);
    let code = |file| refusal(&engine.write("forge", plan, vec![file])).0;
    assert_eq!(code(engine.filled("c", b"x")), FileCode::NotDeclared);
    assert_eq!(code(engine.filled("b", b"x")), FileCode::NotDeclared, "it is another module's");
    assert_eq!(code(engine.filled("../root/a", b"x")), FileCode::PathRefused);
    let mut wrong = engine.filled("a", b"x");
    wrong.sha256 = "0".repeat(64);
    assert_eq!(code(wrong), FileCode::HashMismatch);
    let mut outside = engine.filled("a", b"x");
    outside.path = "/etc/passwd".to_owned();
    assert_eq!(code(outside), FileCode::NotDeclared);
    assert_eq!(request_code(engine.ask("nobody", plan, Vec::new())), RequestCode::UnknownModule);
    let old = Digest::of(b"an older plan");
    assert_eq!(request_code(engine.ask("forge", old, vec![engine.filled("a", b"x")])), RequestCode::Behind);
    assert_eq!(request_code(engine.ask("forge", other, vec![engine.filled("b", b"x")])), RequestCode::Behind);
    assert!(names(&engine.at("root")).is_empty());
}

#[test]
fn t46_a_line_that_is_too_long_and_one_that_is_none_are_answered() {
    let mut engine = Engine::new();
    engine.start(ENGINE);
    let answer = |stream: UnixStream| {
        let (mut reader, mut line) = (BufReader::new(stream), String::new());
        reader.read_line(&mut line).unwrap();
        let code = request_code(Reply::read(line.trim_end().as_bytes()).unwrap().body);
        (code, reader)
    };
    let mut stream = UnixStream::connect(engine.at("fill.sock")).unwrap();
    stream.write_all(b"{\"id\":1,\"op\":\"none\"}\n").unwrap();
    assert_eq!(answer(stream).0, RequestCode::BadRequest);
    let mut stream = UnixStream::connect(engine.at("fill.sock")).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let part = vec![b'x'; 1024 * 1024];
        // The other end may have closed it before the last of them.
        (0..65).all(|_| writing.write_all(&part).is_ok())
    });
    let (code, mut rest) = answer(stream.try_clone().unwrap());
    assert_eq!(code, RequestCode::TooLarge);
    let mut after = Vec::new();
    assert!(rest.read_to_end(&mut after).is_err() || after.is_empty(), "nothing is said after it");
    let _ = stream.flush();
    writer.join().unwrap();
    assert!(names(&engine.at("root")).is_empty());
}

#[test]
fn t46_another_account_is_closed_without_being_read() {
    let mut engine = Engine::new();
    engine.client = Some(rustix::process::geteuid().as_raw() + 1);
    let plan = engine.declare("forge", &engine.file("a", OWNED));
    engine.start(ENGINE);
    // It may be closed before all is written, or once it is.
    let said = engine.try_send("forge", plan, vec![engine.filled("a", b"x")]).and_then(|stream| {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).map(|_| line)
    });
    assert!(said.as_deref().unwrap_or_default().is_empty(), "{said:?}");
    assert!(names(&engine.at("root")).is_empty());
}

#[test]
fn t47_links_and_what_is_no_file_are_refused_and_a_hard_link_loses_its_name() {
    let mut engine = Engine::new();
    let outside = engine.at("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("theirs"), "theirs").unwrap();
    let all = ["link", "dir/in-link", "fifo", "hard", "folder"];
    let files: Vec<_> = all.iter().map(|name| engine.file(name, OWNED)).collect();
    let plan = engine.declare("forge", &files.join(","));
    symlink(outside.join("theirs"), engine.path("link")).unwrap();
    symlink(&outside, engine.path("dir")).unwrap();
    fs::create_dir(engine.path("folder")).unwrap();
    mknodat(CWD, engine.path("fifo"), FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::hard_link(outside.join("theirs"), engine.path("hard")).unwrap();
    engine.start(ENGINE);
    for (name, says) in [
        ("link", "link is a symbolic link"),
        ("dir/in-link", "dir is a symbolic link"),
        ("fifo", "fifo is a FIFO"),
        ("folder", "folder is a folder"),
    ] {
        let written = engine.write("forge", plan, vec![engine.filled(name, b"x")]);
        let (code, reason) = refusal(&written);
        assert!(code == FileCode::PathRefused && reason.contains(says), "{name}: {reason}");
    }
    let written = engine.write("forge", plan, vec![engine.filled("hard", b"ours")]);
    assert_eq!(written.files[0].action, Some(Action::Written));
    assert_eq!(fs::read(engine.path("hard")).unwrap(), b"ours");
    assert_eq!(fs::read(outside.join("theirs")).unwrap(), b"theirs");
    assert_eq!(names(&outside), ["theirs"]);
    assert_eq!(names(&engine.at("root")), ["dir", "fifo", "folder", "hard", "link"]);
}

#[test]
fn t47_a_folder_that_is_swapped_for_a_link_again_and_again_leads_nowhere_else() {
    let mut engine = Engine::new();
    let (folder, aside, outside) = (engine.at("root/f"), engine.at("root/aside"), engine.at("outside"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, &aside).unwrap();
    let plan = engine.declare("forge", &engine.file("f/a", OWNED));
    engine.start(ENGINE);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..2 {
                    rustix::fs::renameat_with(CWD, &folder, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        let mut done = 0;
        for round in 0..300 {
            let written =
                engine.write("forge", plan, vec![engine.filled("f/a", format!("{round}").as_bytes())]);
            done += usize::from(written.files[0].err.is_none());
        }
        is_over.store(true, Ordering::Relaxed);
        eprintln!("{done} of 300 were written");
    });
    assert!(names(&outside).is_empty(), "{:?}", names(&outside));
    assert!(names(&folder).iter().all(|name| name == "a"), "{:?}", names(&folder));
}

#[test]
fn t47_a_mounted_file_is_not_written_in_place_and_a_full_disk_leaves_the_old_content_whole() {
    let mut engine = Engine::new();
    let files = [engine.file("mounted", OWNED), engine.file("small/a", OWNED), engine.file("small/b", OWNED)];
    let plan = engine.declare("forge", &files.join(","));
    fs::write(engine.path("mounted"), "old").unwrap();
    fs::write(engine.at("source"), "old").unwrap();
    fs::create_dir(engine.path("small")).unwrap();
    let script = "mount --bind source root/mounted && mount -t tmpfs -o size=64k,mode=755 tmpfs root/small";
    if !engine.start_mounted(ENGINE, script) {
        return eprintln!("SKIPPED: nothing can be mounted here");
    }
    let written = engine.write("forge", plan, vec![engine.filled("mounted", b"new")]);
    let (code, reason) = refusal(&written);
    assert!(code == FileCode::Io && reason.contains("mount of its own"), "{code:?} {reason}");
    assert_eq!(fs::read_to_string(engine.at("source")).unwrap(), "old");
    let small = |name, size: usize| engine.filled(name, &vec![b'x'; size]);
    let written = engine.write("forge", plan, vec![small("small/a", 1000)]);
    assert_eq!(written.files[0].action, Some(Action::Written));
    // The second of two does not fit, and so the first is not written either.
    let written = engine.write("forge", plan, vec![small("small/a", 2000), small("small/b", 100_000)]);
    let codes: Vec<_> = written.files.iter().map(|file| file.err.as_ref().map(|err| err.code)).collect();
    assert_eq!(codes, [Some(FileCode::Io), Some(FileCode::NoSpace)], "{written:?}");
    assert_eq!(fs::read(engine.seen("small/a")).unwrap().len(), 1000);
    assert_eq!(names(&engine.seen("small")), ["a"]);
    assert_eq!(names(&engine.at("root")), ["mounted", "small"]);
}
