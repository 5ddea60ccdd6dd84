//! Tests of a field's intervals as C.

use std::fmt::Write as _;

use crate::field::Var;

/// A text as a word of C.
#[must_use]
pub fn word(text: &str) -> String {
    let mut word: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if word.starts_with(|c: char| c.is_ascii_digit()) || word.is_empty() {
        word.insert(0, '_');
    }
    word
}

/// The variable for a field.
#[must_use]
pub fn name(var: Var) -> String {
    let text = var.to_string();
    let text = text.strip_prefix("ip ").unwrap_or(&text);
    match text {
        // Names of C and of the dialect.
        "port" => "in".into(),
        "src" | "dst" | "len" | "id" | "ttl" | "proto" => text.into(),
        text => word(text),
    }
}

/// A value as it is written.
#[must_use]
pub fn number(var: Var, value: u64) -> String {
    if var.is_address() {
        let [a, b, c, d] = (value as u32).to_be_bytes();
        return format!("IPV4({a}, {b}, {c}, {d})");
    }
    match var.most() > 65_535 {
        true => format!("{value:#x}{}", if value > 0xffff_ffff { "ULL" } else { "" }),
        false => value.to_string(),
    }
}

/// Whether a value is in one of some intervals.
#[must_use]
pub fn any(var: Var, value: &str, ranges: &[(u64, u64)]) -> String {
    let one = |(low, high): &(u64, u64)| one(var, value, *low, *high);
    let tests: Vec<String> = ranges.iter().map(one).collect();
    if let [only] = tests.as_slice() {
        return only.clone();
    }
    let mut text = String::new();
    for (n, test) in tests.iter().enumerate() {
        let joined = if n > 0 { " || " } else { "" };
        let _ = match test.contains("&&") {
            true => write!(text, "{joined}({test})"),
            false => write!(text, "{joined}{test}"),
        };
    }
    text
}

fn one(var: Var, value: &str, low: u64, high: u64) -> String {
    let max = var.most();
    let tight = |value: &str| match value.contains(' ') {
        true => format!("({value})"),
        false => value.to_owned(),
    };
    if max == 1 {
        let value = tight(value);
        return if low == 1 { value } else { format!("!{value}") };
    }
    if low == high {
        return format!("{} == {}", tight(value), number(var, low));
    }
    if low == 0 {
        return format!("{} <= {}", tight(value), number(var, high));
    }
    if high >= max {
        return format!("{} >= {}", tight(value), number(var, low));
    }
    let size = high - low + 1;
    if var.is_address() && size.is_power_of_two() && low.is_multiple_of(size) {
        let bits = 32 - size.trailing_zeros();
        let mask = max - (size - 1);
        let number = number(var, low);
        return format!(
            "({} & {mask:#x}) == {number} /* {bits} bits */",
            tight(value)
        );
    }
    let value = tight(value);
    format!(
        "{value} >= {} && {value} <= {}",
        number(var, low),
        number(var, high)
    )
}
