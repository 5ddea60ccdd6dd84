//! Functions that scripts call in `$(…)`.

use super::Script;
use crate::arguments::{boolean, integer};
use crate::interpreter::Context;
use crate::language::args;

/// Whether a read handler is the whole configuration's.
pub(super) fn is_global(name: &str) -> bool {
    [
        "list",
        "config",
        "flatconfig",
        "version",
        "requirements",
        "classes",
    ]
    .contains(&name)
}

fn number(text: &str) -> f64 {
    match integer(text) {
        Some(whole) => whole as f64,
        None => text.trim().parse().unwrap_or(0.0),
    }
}

fn show(number: f64) -> String {
    if number == number.trunc() && number.abs() < 1e15 {
        return format!("{}", number as i64);
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Script {
    /// The value of a function; none if there is none of the name.
    pub(crate) fn function(&mut self, name: &str, rest: &str, cx: &Context<'_>) -> Option<String> {
        let words: Vec<String> = args::words(rest).iter().map(|w| args::text(w)).collect();
        let numbers: Vec<f64> = words.iter().map(|w| number(w)).collect();
        let first = numbers.first().copied().unwrap_or(0.0);
        let others = numbers.get(1..).unwrap_or(&[]);
        let yes = |answer: bool| Some(answer.to_string());
        let fold = |f: fn(f64, f64) -> f64| Some(show(others.iter().fold(first, |a, b| f(a, *b))));
        let whole = |f: fn(i64, i64) -> Option<i64>| {
            let all = words.iter().map(|w| integer(w).unwrap_or(0));
            let answer = all.map(Some).reduce(|a, b| f(a?, b?));
            answer.flatten().map(|n| n.to_string())
        };
        match name {
            "add" => Some(show(numbers.iter().sum())),
            "sub" => fold(|a, b| a - b),
            "mul" => Some(show(numbers.iter().product())),
            "div" => fold(|a, b| a / b),
            "min" => fold(f64::min),
            "max" => fold(f64::max),
            "idiv" => whole(i64::checked_div),
            "mod" | "rem" => whole(i64::checked_rem),
            "neg" => Some(show(-first)),
            "abs" => Some(show(first.abs())),
            "ceil" => Some(show(first.ceil())),
            "floor" => Some(show(first.floor())),
            "round" => Some(show(first.round())),
            "avg" => Some(show(
                numbers.iter().sum::<f64>() / numbers.len().max(1) as f64,
            )),
            "count" => Some(numbers.len().to_string()),
            "popcount" => Some(numbers.iter().filter(|n| **n != 0.0).count().to_string()),
            "gt_vec" => Some(others.iter().filter(|n| **n > first).count().to_string()),
            "eq" | "ne" => {
                let same = match words.as_slice() {
                    [a, b] => a == b || (a.parse::<f64>().is_ok() && number(a) == number(b)),
                    _ => false,
                };
                yes(same == (name == "eq"))
            }
            "gt" => yes(others.first().is_some_and(|b| first > *b)),
            "ge" => yes(others.first().is_some_and(|b| first >= *b)),
            "lt" => yes(others.first().is_some_and(|b| first < *b)),
            "le" => yes(others.first().is_some_and(|b| first <= *b)),
            "not" => yes(words.first().and_then(|w| boolean(w)) != Some(true)),
            "and" => yes(words.iter().all(|w| boolean(w) == Some(true))),
            "or" => yes(words.iter().any(|w| boolean(w) == Some(true))),
            "if" => {
                let condition = words.first().and_then(|w| boolean(w)) == Some(true);
                let pick = if condition {
                    words.get(1)
                } else {
                    words.get(2)
                };
                Some(pick.cloned().unwrap_or_default())
            }
            "in" => yes(words.iter().skip(1).any(|w| Some(w) == words.first())),
            "htons" | "ntohs" => Some((first as i64 as u16).swap_bytes().to_string()),
            "htonl" | "ntohl" => Some((first as i64 as u32).swap_bytes().to_string()),
            "now" => Some(crate::summary::field::time(cx.now())),
            "random" => {
                let below = if first >= 1.0 { first as u64 } else { 1 << 32 };
                Some((u64::from(cx.random()) % below).to_string())
            }
            "cat" => {
                let mut all = String::new();
                for file in &words {
                    match cx.content(file) {
                        Ok(bytes) => all += &String::from_utf8_lossy(&bytes),
                        Err(why) => cx.note(&format!("{why}\n")),
                    }
                }
                Some(all)
            }
            "length" => Some(args::unquote(rest).len().to_string()),
            "unquote" => Some(args::text(rest)),
            "get" => words
                .first()
                .map(|w| self.variables.get(w).cloned().unwrap_or_default()),
            "shift" => {
                let name = words.first()?;
                let value = self.variables.get(name).cloned().unwrap_or_default();
                let (word, left) = args::first_word(&value);
                let (word, left) = (word.to_owned(), left.to_owned());
                self.variables.insert(name.clone(), left);
                Some(word)
            }
            "first" => words.first().cloned(),
            "nth" => {
                let at = usize::try_from(first as i64).ok()?;
                words.get(at + 1).cloned()
            }
            _ => None,
        }
    }
}
