//! How often a wrong token may be shown. Plain code; time arrives as an argument.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Wrong tokens that one address may show in a row before it has to wait.
const FREE: u32 = 5;
/// The first wait; it doubles with each further wrong token.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// An address that shows no wrong token for this long begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(15);
/// Addresses remembered; the one quiet for longest gives way.
const MAX_ADDRESSES: usize = 256;

#[derive(Debug)]
struct Record {
    address: IpAddr,
    wrong: u32,
    last: Instant,
}

/// Wrong tokens by address.
#[derive(Debug, Default)]
pub(in super::super) struct Throttle {
    list: Vec<Record>,
}

impl Throttle {
    /// How long this address has to wait before its token is looked at, if it has to.
    pub fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let address = network(address);
        let record = self.list.iter().find(|record| record.address == address)?;
        let doublings = record.wrong.checked_sub(FREE)?;
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_WAIT);
        wait.checked_sub(now.saturating_duration_since(record.last)).filter(|left| !left.is_zero())
    }

    /// Notes a wrong token; answers how many there were in a row.
    pub fn wrong(&mut self, address: IpAddr, now: Instant) -> u32 {
        let address = network(address);
        self.list.retain(|record| now.saturating_duration_since(record.last) < FORGOTTEN_AFTER);
        if let Some(record) = self.list.iter_mut().find(|record| record.address == address) {
            record.wrong = record.wrong.saturating_add(1);
            record.last = now;
            return record.wrong;
        }
        if self.list.len() >= MAX_ADDRESSES {
            let quietest = self.list.iter().enumerate().min_by_key(|(_, record)| record.last);
            if let Some(at) = quietest.map(|(at, _)| at) {
                self.list.swap_remove(at);
            }
        }
        self.list.push(Record { address, wrong: 1, last: now });
        1
    }

    /// Notes a right token: the address begins anew.
    pub fn right(&mut self, address: IpAddr) {
        let address = network(address);
        self.list.retain(|record| record.address != address);
    }
}

/// Lines of one kind that a stranger can cause: a few in each second, the rest counted.
#[derive(Debug, Default)]
pub(in super::super) struct Lines {
    window: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Lines {
    /// Some when a line may be said now, with the number of those left out since the last one.
    pub fn admit(&mut self, now: Instant) -> Option<u64> {
        const IN_A_WINDOW: u32 = 5;
        const WINDOW: Duration = Duration::from_secs(1);
        if self.window.is_none_or(|began| now.saturating_duration_since(began) >= WINDOW) {
            self.window = Some(now);
            self.said = 0;
        }
        if self.said < IN_A_WINDOW {
            self.said = self.said.saturating_add(1);
            return Some(std::mem::take(&mut self.unsaid));
        }
        self.unsaid = self.unsaid.saturating_add(1);
        None
    }
}

/// Whoever has one IPv6 address has a whole /64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => four.into(),
            None => Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX)).into(),
        },
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn five_are_free_then_waits_double_up_to_a_limit_and_a_right_token_ends_them() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let kim = address("192.0.2.1");
        let waits: Vec<_> = (0..16)
            .map(|_| {
                throttle.wrong(kim, now);
                throttle.wait(kim, now).map_or(0, |wait| wait.as_secs())
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
        assert_eq!(throttle.wait(kim, now + Duration::from_secs(299)), Some(Duration::from_secs(1)));
        assert_eq!(throttle.wait(kim, now + LONGEST_WAIT), None);
        assert_eq!(throttle.wait(address("192.0.2.2"), now), None);
        throttle.right(kim);
        assert_eq!(throttle.wait(kim, now), None);
    }

    #[test]
    fn a_quiet_address_begins_anew() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let kim = address("192.0.2.1");
        for _ in 0..9 {
            throttle.wrong(kim, now);
        }
        assert_eq!(throttle.wrong(kim, now + FORGOTTEN_AFTER), 1);
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        assert_eq!(throttle.wrong(address("2001:db8::1"), now), 1);
        assert_eq!(throttle.wrong(address("2001:db8::2:3"), now), 2);
        assert_eq!(throttle.wrong(address("2001:db8:0:1::1"), now), 1);
        assert_eq!(throttle.wrong(address("::ffff:192.0.2.1"), now), 1);
        assert_eq!(throttle.wrong(address("::ffff:192.0.2.2"), now), 1);
    }

    #[test]
    fn a_flood_of_lines_is_cut_and_the_next_line_says_how_many_were_left_out() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        assert_eq!((0..100).filter(|_| lines.admit(now).is_some()).count(), 5);
        assert_eq!(lines.admit(now + Duration::from_secs(1)), Some(95));
        assert_eq!(lines.admit(now + Duration::from_secs(1)), Some(0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..10_000_u32 {
            throttle.wrong(std::net::Ipv4Addr::from_bits(n).into(), now);
        }
        assert_eq!(throttle.list.len(), MAX_ADDRESSES);
    }
}
