//! The options of a port's word: `KIND:NAME?option=value&option=value`.

use std::str::FromStr;

use super::PortError;

/// A port's name and its options. Every option must be taken by somebody: [`Query::finish`] refuses
/// what is left, so that a misspelt option does not go unnoticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    word: String,
    /// what stands before the question mark
    pub name: String,
    options: Vec<(String, Option<String>)>,
}

impl Query {
    /// Splits `rest`, what stands behind the colon of a port of kind `scheme`.
    ///
    /// # Errors
    /// [`PortError::Option`] when an option is given twice or has no name.
    pub fn parse(scheme: &str, rest: &str) -> Result<Self, PortError> {
        let word = format!("{scheme}:{rest}");
        let (name, options) = rest.split_once('?').unwrap_or((rest, ""));
        let mut query = Self {
            word,
            name: name.to_owned(),
            options: Vec::new(),
        };
        for option in options.split('&').filter(|o| !o.is_empty()) {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (option, None),
            };
            if key.is_empty() {
                return Err(query.wrong(option, "an option has a name before `=`"));
            }
            if query.options.iter().any(|(k, _)| k == key) {
                return Err(query.wrong(key, "it is given twice"));
            }
            query.options.push((key.to_owned(), value));
        }
        Ok(query)
    }

    /// The whole word, for messages.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Takes an option as it stands; none when it is not given.
    pub fn text(&mut self, key: &str) -> Option<String> {
        let index = self.options.iter().position(|(k, _)| k == key)?;
        Some(self.options.remove(index).1.unwrap_or_default())
    }

    /// Takes an option that is a value; none when it is not given.
    ///
    /// # Errors
    /// [`PortError::Option`] when it is not what `what` says.
    pub fn value<T: FromStr>(&mut self, key: &str, what: &str) -> Result<Option<T>, PortError> {
        match self.text(key) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(self.wrong(key, what)),
            },
        }
    }

    /// Takes an option that is a number within bounds; `default` when it is not given.
    ///
    /// # Errors
    /// [`PortError::Option`] when it is no such number.
    pub fn number(
        &mut self,
        key: &str,
        default: u64,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, PortError> {
        let what = format!("a number from {} to {}", bounds.start(), bounds.end());
        let number = self.value(key, &what)?.unwrap_or(default);
        if bounds.contains(&number) {
            Ok(number)
        } else {
            Err(self.wrong(key, &what))
        }
    }

    /// Takes an option that is there or is not (`?busy`), or is `on` or `off`.
    ///
    /// # Errors
    /// [`PortError::Option`] when it is neither.
    pub fn switch(&mut self, key: &str, default: bool) -> Result<bool, PortError> {
        match self.text(key).as_deref() {
            None => Ok(default),
            Some("" | "on") => Ok(true),
            Some("off") => Ok(false),
            Some(_) => Err(self.wrong(key, "`on` or `off`")),
        }
    }

    /// What is left, as it would stand behind the colon.
    #[must_use]
    pub fn rest(&self) -> String {
        let option = |(key, value): &(String, Option<String>)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        };
        let options: Vec<_> = self.options.iter().map(option).collect();
        if options.is_empty() {
            return self.name.clone();
        }
        format!("{}?{}", self.name, options.join("&"))
    }

    /// Refuses options that nobody took.
    ///
    /// # Errors
    /// [`PortError::Option`] for the first of them.
    pub fn finish(&self, known: &str) -> Result<(), PortError> {
        match self.options.first() {
            Some((key, _)) => {
                Err(self.wrong(key, &format!("there is no such option; there are {known}")))
            }
            None => Ok(()),
        }
    }

    /// An error about an option.
    #[must_use]
    pub fn wrong(&self, key: &str, what: &str) -> PortError {
        PortError::Option {
            word: self.word.clone(),
            option: key.to_owned(),
            what: what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_by_name_and_the_rest_is_refused() {
        let mut query = Query::parse("tap", "t0?seed=7&busy&drop=0.5").unwrap();
        assert_eq!(query.name, "t0");
        assert_eq!(query.number("seed", 1, 0..=9).unwrap(), 7);
        assert_eq!(query.number("ring", 64, 1..=128).unwrap(), 64);
        assert!(query.switch("busy", false).unwrap());
        assert!(query.finish("`a`").is_err());
        assert_eq!(query.value::<f64>("drop", "a share").unwrap(), Some(0.5));
        assert_eq!(query.rest(), "t0");
        query.finish("`a`").unwrap();
        let kept = Query::parse("tap", "t0?b&c=1").unwrap();
        assert_eq!(kept.rest(), "t0?b&c=1");
    }

    #[test]
    fn a_wrong_option_says_what_it_should_be() {
        for rest in ["a?=1", "a?x=1&x=2"] {
            assert!(Query::parse("tap", rest).is_err(), "{rest}");
        }
        let error = |rest: &str| {
            let mut query = Query::parse("tap", rest).unwrap();
            query.number("n", 1, 1..=4).unwrap_err().to_string()
        };
        assert_eq!(
            error("a?n=5"),
            "`tap:a?n=5`: option `n`: a number from 1 to 4"
        );
        assert!(error("a?n=x").contains("a number from 1 to 4"));
    }
}
