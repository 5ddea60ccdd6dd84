//! Tables of a TOML file, with the lines that things stand in.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file as it is read.
pub struct Source<'a> {
    /// its text
    pub text: &'a str,
    /// where its lines end
    ends: Vec<usize>,
}

/// An error with its place and its fix.
pub struct Wrong {
    /// the bytes of the file that are wrong
    pub span: Option<Range<usize>>,
    pub what: String,
    pub help: String,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Self {
        let bytes = text.bytes().enumerate();
        let ends = bytes.filter(|(_, b)| *b == b'\n').map(|(at, _)| at);
        Self {
            text,
            ends: ends.collect(),
        }
    }

    /// The line of a range of bytes, from 1.
    pub fn line(&self, span: &Range<usize>) -> usize {
        self.ends.partition_point(|end| *end < span.start) + 1
    }

    /// The bytes of a line, without what it is indented by.
    pub fn whole(&self, line: usize) -> Range<usize> {
        let begin = match line.checked_sub(2).and_then(|at| self.ends.get(at)) {
            Some(end) => end + 1,
            None => 0,
        };
        let text = self.text.get(begin..).and_then(|rest| rest.lines().next());
        let text = text.unwrap_or_default();
        let indent = text.len() - text.trim_start().len();
        begin + indent..begin + text.trim_end().len().max(indent)
    }

    pub fn wrong<T>(&self, value: &Spanned<T>, what: String, help: &str) -> Wrong {
        Wrong {
            span: Some(value.span()),
            what,
            help: help.to_owned(),
        }
    }

    /// A text.
    pub fn text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
        let text = value.get_ref().as_str().map(str::to_owned);
        text.ok_or_else(|| self.kind(key, value, "a text, in quotes"))
    }

    /// A list of texts.
    pub fn texts(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Wrong> {
        let list = value.get_ref().as_array();
        let list = list.ok_or_else(|| self.kind(key, value, "a list of texts"))?;
        list.iter().map(|v| self.text(key, v)).collect()
    }

    /// A table.
    pub fn table<'b, 'i>(
        &self,
        key: &str,
        value: &'b Spanned<DeValue<'i>>,
    ) -> Result<&'b DeTable<'i>, Wrong> {
        let table = value.get_ref().as_table();
        table.ok_or_else(|| self.kind(key, value, "a table"))
    }

    /// A value as written on a command line: a text, a number, true or false.
    pub fn scalar(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => {
                let read = i128::from_str_radix(&number.as_str().replace('_', ""), number.radix());
                let read = read.map(|n| n.to_string());
                read.map_err(|_| self.kind(key, value, "a number"))
            }
            DeValue::Float(number) => Ok(number.as_str().replace('_', "")),
            DeValue::Boolean(truth) => Ok(truth.to_string()),
            _ => Err(self.kind(key, value, "a text or a number")),
        }
    }

    /// `NAME=VALUE` for each member of a table.
    pub fn pairs(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(String, String)>, Wrong> {
        let table = self.table(key, value)?.iter();
        let pair = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let name: &std::borrow::Cow<'_, str> = name.get_ref();
            Ok((name.to_string(), self.scalar(name, value)?))
        };
        table.map(pair).collect()
    }

    /// That a value is of the wrong kind.
    pub fn kind(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> Wrong {
        let is = value.get_ref().type_str();
        self.wrong(
            value,
            format!("`{key}` is {wanted}, not of type {is}"),
            "see docs/chains.md",
        )
    }
}
