//! The options of receive side scaling, for ports that hash in software: `nic`, `key`, `fields`, `table`
//! and `symmetric`.

use millrace_steer::{Field, Rss, nic};

use super::{PortError, Query};

/// The model that is meant when nobody names one.
pub const USUAL_NIC: &str = "generic";
/// More digits than any key has.
const MOST_DIGITS: usize = 1024;

/// What a port's word says of receive side scaling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RssOptions {
    /// the model of a NIC
    pub nic: Option<String>,
    /// the key
    pub key: Option<Vec<u8>>,
    /// the fields to hash
    pub fields: Option<Vec<Field>>,
    /// entries of the indirection table
    pub table: Option<usize>,
    /// whether both directions of a flow are hashed alike
    pub symmetric: bool,
}

impl RssOptions {
    /// Takes the options out of a port's word.
    ///
    /// # Errors
    /// [`PortError::Option`] when one makes no sense.
    pub fn take(query: &mut Query) -> Result<Self, PortError> {
        let key = match query.text("key") {
            None => None,
            Some(text) => {
                Some(hex(&text).ok_or_else(|| query.wrong("key", "hexadecimal digits, in pairs"))?)
            }
        };
        let fields = match query.text("fields") {
            None => None,
            Some(text) => Some(fields(&text).ok_or_else(|| {
                let names: Vec<_> = Field::ALL.iter().map(|f| f.name()).collect();
                query.wrong(
                    "fields",
                    &format!("some of {}, joined by `+`", names.join(", ")),
                )
            })?),
        };
        Ok(Self {
            nic: query.text("nic"),
            key,
            fields,
            table: query.value("table", "the size of the indirection table")?,
            symmetric: query.switch("symmetric", false)?,
        })
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> &str {
        self.nic.as_deref().unwrap_or(USUAL_NIC)
    }

    /// As a device of the model does it, over this many queues; `query` is for errors.
    ///
    /// # Errors
    /// [`PortError::Option`] when there is no such model, or it cannot do what is asked.
    pub fn rss(&self, query: &Query, queues: u32) -> Result<Rss, PortError> {
        let wrong = |option, e: &dyn std::fmt::Display| query.wrong(option, &e.to_string());
        let device = nic::named(self.model()).map_err(|e| wrong("nic", &e))?;
        let mut rss = Rss::new(&device, queues);
        if let Some(key) = &self.key {
            rss = rss.with_key(&device, key).map_err(|e| wrong("key", &e))?;
        }
        if let Some(fields) = &self.fields {
            let chosen = rss.with_only(&device, fields);
            rss = chosen.map_err(|e| wrong("fields", &e))?;
        }
        if let Some(size) = self.table {
            let sized = rss.with_table_size(&device, size, queues);
            rss = sized.map_err(|e| wrong("table", &e))?;
        }
        if self.symmetric {
            let both = rss.symmetric(&device);
            rss = both.map_err(|e| wrong("symmetric", &e))?;
        }
        Ok(rss)
    }
}

fn fields(text: &str) -> Option<Vec<Field>> {
    text.split('+').map(Field::named).collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b':').collect();
    // `from_str_radix` alone would take a sign.
    let plain = digits.iter().all(u8::is_ascii_hexdigit);
    if !plain || !digits.len().is_multiple_of(2) || digits.len() > MOST_DIGITS {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rss(options: &str) -> Result<Rss, PortError> {
        let mut query = Query::parse("x", &format!("y?{options}"))?;
        let options = RssOptions::take(&mut query)?;
        query.finish("none")?;
        options.rss(&query, 4)
    }

    #[test]
    fn options_make_the_device_that_they_say() {
        let device = nic::named("e810").unwrap();
        let key = "00:01:02:03".repeat(13);
        let made = rss(&format!(
            "nic=e810&key={key}&table=2048&fields=source-address+destination-address&symmetric"
        ));
        let expected = Rss::new(&device, 4)
            .with_key(&device, &[0, 1, 2, 3].repeat(13))
            .and_then(|r| r.with_table_size(&device, 2048, 4))
            .and_then(|r| r.with_only(&device, &[Field::SourceAddress, Field::DestinationAddress]))
            .and_then(|r| r.symmetric(&device));
        assert_eq!(made.unwrap(), expected.unwrap());
        let usual = nic::named(USUAL_NIC).unwrap();
        assert_eq!(rss("").unwrap(), Rss::new(&usual, 4));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (options, why) in [
            ("nic=e1000", "there is no model"),
            ("key=0", "in pairs"),
            ("key=+1", "in pairs"),
            ("key=00", "takes a key of 40 bytes"),
            ("fields=", "source-address"),
            ("fields=ports", "source-address"),
            ("fields=source-port", "cannot hash"),
            ("table=99", "entries"),
            ("symmetric", "no symmetric hash"),
        ] {
            let text = rss(options).unwrap_err().to_string();
            assert!(text.contains(why), "{options}: {text}");
        }
    }
}
