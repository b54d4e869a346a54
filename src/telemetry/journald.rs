//! Lines for the journal of systemd: it keeps time itself, and takes a line's priority from its front.

use std::os::fd::AsFd;

use rustix::fs::fstat;
use tracing::Level;

/// What systemd tells a service about the stream that it reads: device and inode, with a colon between.
const STREAM: &str = "JOURNAL_STREAM";

/// True when this descriptor is the one that the service manager gave us for the journal, and leads nowhere else by now.
pub fn leads_there(descriptor: impl AsFd) -> bool {
    std::env::var(STREAM).is_ok_and(|stream| is_stream(descriptor, &stream))
}

fn is_stream(descriptor: impl AsFd, stream: &str) -> bool {
    fstat(descriptor).is_ok_and(|about| stream == format!("{}:{}", about.st_dev, about.st_ino))
}

/// The front of a line of this level, see sd-daemon(3).
pub(super) const fn front(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// What a program says of its own on standard error, each line with what it begins with as its priority.
pub fn fronted(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line {
            line if line.starts_with("error") => format!("{}{line}", front(Level::ERROR)),
            line if line.starts_with("warning") => format!("{}{line}", front(Level::WARN)),
            line => line.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn only_the_stream_that_is_named_is_the_journal() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let about = file.as_file().metadata().unwrap();
        let named = format!("{}:{}", about.dev(), about.ino());
        assert!(is_stream(file.as_file(), &named));
        assert!(is_stream(File::open(file.path()).unwrap(), &named));
        let other = tempfile::tempfile().unwrap();
        assert!(!is_stream(&other, &named));
        assert!(!is_stream(file.as_file(), "") && !is_stream(file.as_file(), &format!("{named}0")));
    }

    #[test]
    fn what_is_said_has_the_priority_of_its_first_word() {
        assert_eq!(
            fronted("error: no\nwarning: so so\nquartermaster 1.0\n"),
            "<3>error: no\n<4>warning: so so\nquartermaster 1.0\n"
        );
    }
}
