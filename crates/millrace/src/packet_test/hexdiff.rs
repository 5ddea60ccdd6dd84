//! Where two byte strings differ, as people read it.

use std::fmt::Write;

const ROW: usize = 16;
/// Rows shown before the rest is only counted.
const ROWS: usize = 8;

/// The rows of 16 bytes in which the two differ, with marks below the bytes that do.
pub fn hexdiff(want: &[u8], got: &[u8]) -> String {
    let mut text = String::new();
    if want.len() != got.len() {
        let _ = writeln!(text, "  expected {} bytes, got {}", want.len(), got.len());
    }
    let rows = want.len().max(got.len()).div_ceil(ROW);
    let differing: Vec<_> = (0..rows)
        .filter(|r| row(want, *r) != row(got, *r))
        .collect();
    for index in differing.iter().take(ROWS) {
        let (w, g) = (row(want, *index), row(got, *index));
        let marks = (0..ROW).map(|i| if w.get(i) == g.get(i) { "   " } else { "^^ " });
        let marks: String = marks.collect();
        let _ = writeln!(text, "  {:#06x}  expected  {}", index * ROW, digits(w));
        let _ = writeln!(text, "          got       {}", digits(g));
        let _ = writeln!(text, "                    {}", marks.trim_end());
    }
    if differing.len() > ROWS {
        let _ = writeln!(text, "  and {} more rows", differing.len() - ROWS);
    }
    text.trim_end().to_owned()
}

fn row(bytes: &[u8], index: usize) -> &[u8] {
    let rest = bytes.get(index * ROW..).unwrap_or(&[]);
    rest.get(..ROW).unwrap_or(rest)
}

fn digits(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    digits.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rows_that_differ_are_shown() {
        let want: Vec<u8> = (0..40).collect();
        let mut got = want.clone();
        got[17] = 0xff;
        assert_eq!(
            hexdiff(&want, &got),
            "  0x0010  expected  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f\n          \
             got       10 ff 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f\n                       ^^"
        );
        got.truncate(39);
        assert!(hexdiff(&want, &got).starts_with("  expected 40 bytes, got 39"));
        assert!(hexdiff(&[0; 1000], &[1; 1000]).ends_with("and 55 more rows"));
        assert_eq!(hexdiff(&want, &want), "");
    }
}
