//! Archives of templates, made by hand so that they can also hold what no tool would write.

/// An entry of an archive.
#[derive(Debug, Clone)]
pub struct Entry {
    name: String,
    kind: u8,
    link: String,
    content: Vec<u8>,
}

impl Entry {
    /// A regular file.
    pub fn file(name: &str, content: &[u8]) -> Self {
        Self { name: name.to_owned(), kind: b'0', link: String::new(), content: content.to_vec() }
    }

    /// Another type of entry: `1` hard link, `2` symbolic link, `3` device, `6` FIFO.
    pub fn other(name: &str, kind: char, link: &str) -> Self {
        let kind = u8::try_from(kind).unwrap();
        Self { name: name.to_owned(), kind, link: link.to_owned(), content: vec![] }
    }

    /// Its name and content.
    pub fn shown(&self) -> (&str, &[u8]) {
        (&self.name, &self.content)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, &self.name);
        put(100, "0000644\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", self.content.len()));
        put(136, "00000000000\0");
        put(148, "        ");
        put(157, &self.link);
        put(257, "ustar\0");
        put(263, "00");
        header[156] = self.kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend(header);
        out.extend(&self.content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
}

/// A tar archive of these entries.
pub fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        entry.write(&mut out);
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// So many zeros as gzip would write them, without anybody having to hold them: one literal, then the longest copy again and again.
pub fn gzip_of_zeros(length: usize) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut bits, mut count) = (0_u64, 0);
    let mut push = |value: u64, length: u32| {
        bits |= value << count;
        count += length;
        while count >= 8 {
            out.push(u8::try_from(bits & 255).unwrap());
            bits >>= 8;
            count -= 8;
        }
    };
    // The last block, with the fixed codes; a code's first bit is its highest.
    push(0b011, 3);
    push(u64::from(0b0011_0000_u8.reverse_bits()), 8);
    for _ in 0..length / 258 {
        // A copy of 258 bytes from one byte back.
        push(u64::from(0b1100_0101_u8.reverse_bits()), 8);
        push(0, 5);
    }
    push(0, 7);
    push(0, 7);
    // Checksum and length, which nobody gets to.
    out.extend([0; 8]);
    out
}
