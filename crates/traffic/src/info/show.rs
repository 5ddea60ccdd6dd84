//! A description for people.

use std::fmt;

use super::description::{Bin, Description, Quantiles};

/// A number with a prefix: 12.3 M.
struct Scaled(f64);

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, prefix) = match self.0 {
            value if value >= 1e9 => (value / 1e9, " G"),
            value if value >= 1e6 => (value / 1e6, " M"),
            value if value >= 1e3 => (value / 1e3, " k"),
            value => (value, " "),
        };
        write!(f, "{value:.1}{prefix}")
    }
}

/// Nanoseconds in a unit that suits them.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", ns / 1e6),
            _ => write!(f, "{:.2} s", ns / 1e9),
        }
    }
}

fn quantiles<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    q: &Quantiles,
    show: fn(u64) -> T,
) -> fmt::Result {
    writeln!(
        f,
        "{name:<12} min {}, 10% {}, 25% {}, 50% {}, 75% {}, 90% {}, 99% {}, max {}",
        show(q.min),
        show(q.p10),
        show(q.p25),
        show(q.p50),
        show(q.p75),
        show(q.p90),
        show(q.p99),
        show(q.max)
    )
}

fn bin(f: &mut fmt::Formatter<'_>, bin: &Bin, packets: u64) -> fmt::Result {
    let range = match bin.to {
        Some(to) => format!("{} to {to}", bin.from),
        None => format!("{} on", bin.from),
    };
    let share = bin.packets as f64 / packets.max(1) as f64;
    let bar = "#".repeat((share * 40.0).round() as usize);
    writeln!(f, "{:12} {range:>13} {:>5.1}% {bar}", "", share * 100.0)
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, name: &str| write!(f, "{name:<12} ");
        row(f, "packets")?;
        write!(f, "{}, {} bytes", self.packets, self.bytes)?;
        if self.truncated > 0 {
            write!(
                f,
                ", {} cut by the capture ({} bytes there)",
                self.truncated, self.captured_bytes
            )?;
        }
        writeln!(f)?;
        row(f, "duration")?;
        write!(f, "{:.6} s", self.seconds)?;
        if self.seconds > 0.0 {
            let (packets, bits) = (
                Scaled(self.packets_per_second),
                Scaled(self.bits_per_second),
            );
            write!(f, ", {packets}packets/s, {bits}bit/s")?;
        }
        if self.backwards > 0 {
            write!(f, ", {} stamps go backwards", self.backwards)?;
        }
        writeln!(f)?;
        row(f, "protocols")?;
        for (at, share) in self.protocols.iter().enumerate() {
            let part = share.packets as f64 * 100.0 / self.packets.max(1) as f64;
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} {part:.1}%", share.name)?;
        }
        writeln!(f)?;
        row(f, "headers")?;
        writeln!(
            f,
            "{} IPv4, {} IPv6, {} VLAN, {} fragments, {} malformed",
            self.ipv4, self.ipv6, self.vlan, self.fragments, self.malformed
        )?;
        let wrong = &self.wrong_checksums;
        row(f, "checksums")?;
        writeln!(
            f,
            "wrong: {} IPv4, {} TCP, {} UDP, {} ICMP",
            wrong.ipv4, wrong.tcp, wrong.udp, wrong.icmp
        )?;
        let flows = &self.flows;
        row(f, "flows")?;
        writeln!(
            f,
            "{}{}, the largest {:.1}%, the largest hundredth {:.1}% of packets",
            flows.count,
            if flows.exceeded {
                " (and more: no more are told apart)"
            } else {
                ""
            },
            flows.largest_share * 100.0,
            flows.top_percent_share * 100.0
        )?;
        quantiles(f, "flow packets", &flows.sizes, |packets| packets)?;
        quantiles(f, "sizes", &self.sizes.quantiles, |bytes| bytes)?;
        self.sizes
            .bins
            .iter()
            .filter(|b| b.packets > 0)
            .try_for_each(|b| bin(f, b, self.packets))?;
        quantiles(f, "gaps", &self.bursts.gap_ns, Time)?;
        row(f, "bursts")?;
        write!(
            f,
            "{} packets in the fullest millisecond, {:.1} times the mean",
            self.bursts.most_in_a_millisecond, self.bursts.peak_to_mean
        )
    }
}
