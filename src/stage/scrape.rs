//! Reads the provisioner's metrics as anybody would: `GET /metrics`, text format.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::child::Running;
use super::error::{START_LIMIT, StageError};

const LIMIT: Duration = Duration::from_secs(2);
const MAX_BYTES: u64 = 1 << 20;

/// Every series without its labels; those that differ in labels alone are added up.
pub(crate) type Series = BTreeMap<String, f64>;

/// The series on that port of this machine; none while nobody answers.
pub(crate) async fn metrics(port: u16) -> Option<Series> {
    samples(port).await.map(summed)
}

async fn text(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await.ok()?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split_whitespace().nth(1).filter(|status| *status == "200")?;
    Some(body.to_owned())
}

/// Waits until the provisioner serves metrics on that port.
pub(crate) async fn wait_for_metrics(provisioner: &mut Running, port: u16) -> Result<(), StageError> {
    let begin = Instant::now();
    loop {
        if metrics(port).await.is_some() {
            return Ok(());
        }
        tokio::select! {
            how = provisioner.ended() => return Err(StageError::Ended { how, log: provisioner.tail(20) }),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        if begin.elapsed() > START_LIMIT {
            let what = "the provisioner did not serve metrics";
            return Err(StageError::NotReady { what, log: provisioner.tail(20) });
        }
    }
}

/// Every single series on that port of this machine; none while nobody answers.
pub(crate) async fn samples(port: u16) -> Option<Vec<Sample>> {
    tokio::time::timeout(LIMIT, text(port)).await.ok().flatten().map(|text| parse(&text))
}

/// One series and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// Its name.
    pub(crate) name: String,
    /// Its labels as they are written, without the braces.
    labels: String,
    /// Its value.
    pub(crate) value: f64,
}

impl Sample {
    /// The value of one label. Values with quotes in them are cut there: those we look for have none.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        let marker = format!("{name}=\"");
        let at = self.labels.match_indices(&marker).map(|(at, _)| at);
        let before =
            |at: usize| self.labels.get(..at).is_some_and(|text| text.is_empty() || text.ends_with(','));
        let at = at.into_iter().find(|at| before(*at))?;
        self.labels.get(at + marker.len()..)?.split('"').next()
    }
}

fn summed(samples: Vec<Sample>) -> Series {
    let mut series = Series::new();
    for sample in samples {
        *series.entry(sample.name).or_default() += sample.value;
    }
    series
}

/// The series of a text.
pub(crate) fn parse(text: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // A label's value may hold spaces, so the number is what follows the closing brace.
        let (name, labels, rest) = match line.split_once('{') {
            Some((name, rest)) => {
                let (labels, rest) = rest.rsplit_once('}').unwrap_or((rest, ""));
                (name, labels, rest)
            }
            None => line.split_once(' ').map_or((line, "", ""), |(name, rest)| (name, "", rest)),
        };
        if let Some(value) = rest.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()) {
            samples.push(Sample { name: name.to_owned(), labels: labels.to_owned(), value });
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_added_up_over_their_labels() {
        let text = "# HELP a x\n# TYPE a counter\na{site=\"x } y\",rpc=\"p#q\"} 2\na{site=\"\"} 3\nb 1.5 1700000000\n\nbad\n";
        let series = summed(parse(text));
        assert_eq!(series.get("a"), Some(&5.0));
        assert_eq!(series.get("b"), Some(&1.5));
        assert_eq!(series.len(), 2);
    }

    #[test]
    fn a_label_is_found_by_its_whole_name() {
        let samples = parse("a_bucket{site=\"rpc=\",big_le=\"7\",le=\"0.5\"} 3");
        let label = |name| samples.first().and_then(|sample| sample.label(name));
        assert_eq!((label("le"), label("site"), label("rpc")), (Some("0.5"), Some("rpc="), None));
    }
}
