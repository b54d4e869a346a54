//! Reads the provisioner's metrics as anybody would: `GET /metrics`, text format.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(2);
const MAX_BYTES: u64 = 1 << 20;

/// Every series without its labels; those that differ in labels alone are added up.
pub(super) type Series = BTreeMap<String, f64>;

/// The series on that port of this machine; none while nobody answers.
pub(super) async fn metrics(port: u16) -> Option<Series> {
    let asking = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await.ok()?;
        let mut answer = Vec::new();
        stream.take(MAX_BYTES).read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8(answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.split_whitespace().nth(1).filter(|status| *status == "200")?;
        Some(parse(body))
    };
    tokio::time::timeout(LIMIT, asking).await.ok().flatten()
}

fn parse(text: &str) -> Series {
    let mut series = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // A label's value may hold spaces, so the number is what follows the closing brace.
        let (name, rest) = match line.split_once('{') {
            Some((name, rest)) => (name, rest.rsplit_once('}').map_or("", |(_, rest)| rest)),
            None => line.split_once(' ').unwrap_or((line, "")),
        };
        if let Some(value) = rest.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()) {
            *series.entry(name.to_owned()).or_default() += value;
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_added_up_over_their_labels() {
        let text = "# HELP a x\n# TYPE a counter\na{site=\"x } y\",rpc=\"p#q\"} 2\na{site=\"\"} 3\nb 1.5 1700000000\n\nbad\n";
        let series = parse(text);
        assert_eq!(series.get("a"), Some(&5.0));
        assert_eq!(series.get("b"), Some(&1.5));
        assert_eq!(series.len(), 2);
    }
}
