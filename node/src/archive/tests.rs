use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{Builder, Header};

use super::*;

/// An archive of entries: name, type, content.
fn tar_of(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_ustar();
        // Written by hand: the library refuses the names that are tried here.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("target").unwrap();
        }
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const FILE: EntryType = EntryType::Regular;

#[test]
fn the_three_forms_hold_the_same() {
    let plain = tar_of(&[("./a.ini", FILE, b"x"), ("dir/", EntryType::Directory, b""), ("dir/b", FILE, b"")]);
    let zstd = compress_to_vec(plain.as_slice(), CompressionLevel::Fastest);
    for archive in [plain.clone(), gzip(&plain), zstd] {
        let templates = read(&archive).unwrap();
        let found: Vec<_> = templates.iter().map(|(name, text)| (name.as_str(), &**text)).collect();
        assert_eq!(found, [("a.ini", b"x".as_slice()), ("dir/b", b"")]);
    }
}

#[track_caller]
fn check(entries: &[(&str, EntryType, &[u8])], error: &str) {
    let plain = tar_of(entries);
    for archive in [plain.clone(), gzip(&plain)] {
        assert_eq!(read(&archive).map_err(|error| error.to_string()), Err(error.to_owned()));
    }
}

#[test]
fn names_that_lead_elsewhere_refuse_the_archive() {
    for name in ["../x", "a/../x", "/etc/x", "a//b", "a/./b", "././a", "", "a/"] {
        check(
            &[("good", FILE, b""), (name, FILE, b"")],
            &format!("`{name}` is no relative path of plain parts"),
        );
    }
}

#[test]
fn what_is_no_regular_file_refuses_the_archive() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Continuous,
    ] {
        check(&[("x", kind, b"")], "`x` is no regular file");
    }
}

#[test]
fn a_name_stands_once() {
    check(&[("x", FILE, b"1"), ("./x", FILE, b"2")], "`./x` is there twice");
}

#[test]
fn limits_hold() {
    let long = vec![b'x'; 1024 * 1024 + 1];
    assert!(read(&tar_of(&[("x", FILE, &long[1..])])).is_ok());
    check(&[("x", FILE, &long)], "`x` has more than 1048576 bytes");
    let many: Vec<(String, EntryType)> =
        (0..=MAX_ENTRIES).map(|at| (format!("d{at}"), EntryType::Directory)).collect();
    let many: Vec<(&str, EntryType, &[u8])> =
        many.iter().map(|(name, kind)| (name.as_str(), *kind, b"".as_slice())).collect();
    check(&many, "the archive has more than 4096 entries");
    assert_eq!(read(&vec![0; MAX_FETCHED + 1]), Err(ArchiveError::TooLong(MAX_FETCHED + 1)));
}

#[test]
fn a_bomb_is_stopped_while_it_unpacks() {
    // A member that says it is small but for 200 MiB of blanks behind it: read to find the next header.
    let mut bomb = tar_of(&[("x", FILE, b"")]);
    bomb.truncate(512);
    let blanks = vec![b' '; 1024 * 1024];
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = Header::new_ustar();
    header.set_path("dir").unwrap();
    header.set_entry_type(EntryType::Directory);
    header.set_size(200 * 1024 * 1024);
    header.set_cksum();
    encoder.write_all(&bomb).unwrap();
    encoder.write_all(header.as_bytes()).unwrap();
    (0..200).for_each(|_| encoder.write_all(&blanks).unwrap());
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 2 * 1024 * 1024);
    assert_eq!(read(&packed), Err(ArchiveError::Bomb));
}

#[test]
fn what_is_no_archive_is_damaged() {
    for bytes in [b"not a tar".as_slice(), &[b'x'; 2_000], b"\x1f\x8bxxxxxxxxxxxx", b"\x28\xb5\x2f\xfdxxxx"] {
        assert!(matches!(read(bytes), Err(ArchiveError::Damaged(_))), "{bytes:?}");
    }
    let whole = tar_of(&[("x", FILE, b"some text")]);
    assert!(matches!(read(&whole[..514]), Err(ArchiveError::Damaged(_))));
    assert_eq!(read(b"").map(|templates| templates.len()), Ok(0));
}

proptest! {
    #[test]
    fn no_bytes_bring_the_reader_down(mut bytes in prop::collection::vec(any::<u8>(), 0..3_000), magic in 0..4) {
        match (magic, bytes.len()) {
            (1, 2..) => bytes[..2].copy_from_slice(&[0x1f, 0x8b]),
            (2, 4..) => bytes[..4].copy_from_slice(&[0x28, 0xb5, 0x2f, 0xfd]),
            (3, _) => bytes = tar_of(&[("x", FILE, &bytes)]),
            _ => {}
        }
        let _ = read(&bytes);
    }

    #[test]
    fn a_flipped_byte_is_read_or_refused(at in 0..3_000_usize, bit in 0..8_u8) {
        let mut archive = tar_of(&[("a", FILE, b"text"), ("b/c", FILE, &[7; 600])]);
        let at = at % archive.len();
        archive[at] ^= 1 << bit;
        let _ = read(&archive);
    }
}
