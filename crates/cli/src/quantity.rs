//! Numbers with units, as people read them.

use std::time::Duration;

pub use millrace::bytes;

/// `1234567` as `1 234 567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A duration in the unit that keeps it short.
pub fn duration(time: Duration) -> String {
    let s = time.as_secs_f64();
    match s {
        _ if s >= 1.0 => format!("{s:.2} s"),
        _ if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        _ => format!("{:.0} µs", s * 1e6),
    }
}

/// A share of a whole in per cent; nothing of nothing is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(duration(Duration::from_micros(1500)), "1.5 ms");
        assert!((percent(1, 4) - 25.0).abs() < 1e-9 && percent(1, 0) == 0.0);
    }
}
