//! Lists of elements in a connection, with their ports.

use super::lex::Token;
use super::parse::{Item, KEYWORDS, Parser, Ports, Stop, WRITE, What, border, used_ports};
use crate::error::Place;

impl Parser<'_> {
    /// A list of elements, separated by commas; `begins` where no arrow is before it.
    pub(super) fn list(&mut self, begins: bool) -> Result<Vec<Item>, Stop> {
        let mut items: Vec<Item> = Vec::new();
        loop {
            let place = self.place();
            let inputs = self.ports()?;
            if matches!(self.peek(), Token::Arrow | Token::DoubleArrow) {
                // A bare arrow begins at what is around, or `-> , ->` is wrong.
                if begins && items.is_empty() {
                    let item = self.bare(true, inputs, place)?;
                    return Ok(vec![item]);
                }
                return self.unexpected("an element belongs between two arrows");
            }
            let bare = matches!(
                self.peek(),
                Token::Sign(';' | '}' | ')' | ',') | Token::Bars | Token::End
            );
            if bare && !begins {
                items.push(self.bare(false, inputs, place)?);
            } else {
                let mut item = self.element(inputs)?;
                if self.take(&Token::Colons) {
                    items.push(item);
                    self.declare(&mut items)?;
                    let outputs = self.ports()?;
                    if let Some(last) = items.last_mut() {
                        last.outputs = outputs;
                    }
                    if !self.take(&Token::Sign(',')) {
                        break;
                    }
                    continue;
                }
                item.outputs = self.ports()?;
                if let What::Element(input, output) = item.what
                    && input != output
                    && !item.outputs.written
                {
                    item.outputs = self.all(output, false);
                }
                items.push(item);
            }
            if !self.take(&Token::Sign(',')) {
                break;
            }
        }
        for item in &mut items {
            self.resolve(item);
        }
        Ok(items)
    }

    /// The end of what is around, for an arrow without an element.
    fn bare(&mut self, begins: bool, ports: Ports, place: Place) -> Result<Item, Stop> {
        let Some(&(input, output)) = self.level().ends.last() else {
            return self
                .unexpected("an arrow without an element stands in a compound element only");
        };
        let element = if begins { input } else { output };
        let none = Ports::default();
        let (inputs, outputs) = if begins { (none, ports) } else { (ports, none) };
        Ok(Item {
            what: What::Element(element, element),
            inputs,
            outputs,
            place,
        })
    }

    fn element(&mut self, inputs: Ports) -> Result<Item, Stop> {
        let (name, place) = {
            {
                let (token, place) = self.next();
                match token {
                    Token::Name(name) if !KEYWORDS.contains(&name.as_str()) => (name, place),
                    Token::Sign('{') => {
                        let class = self.compound("", &place)?;
                        let config = self.optional_config(&place)?;
                        let at = self.anonymous(class, "", config, &place)?;
                        return Ok(Item {
                            what: What::Element(at, at),
                            inputs,
                            outputs: Ports::default(),
                            place,
                        });
                    }
                    Token::Sign('(') => {
                        let (input, output) = self.group(&place)?;
                        let inputs = if inputs.written {
                            inputs
                        } else {
                            self.all(input, true)
                        };
                        return Ok(Item {
                            what: What::Element(input, output),
                            inputs,
                            outputs: Ports::default(),
                            place,
                        });
                    }
                    token => {
                        self.ahead = Some((token, place));
                        return self.unexpected(WRITE);
                    }
                }
            }
        };
        let what = if self.ahead.is_none() && self.lexer.at_config() {
            let config = self.config(&place)?;
            let class = self.class_of(&name, &place);
            let at = self.anonymous(class, &name, config, &place)?;
            What::Element(at, at)
        } else {
            What::Name(name)
        };
        Ok(Item {
            what,
            inputs,
            outputs: Ports::default(),
            place,
        })
    }

    pub(super) fn optional_config(&mut self, place: &Place) -> Result<String, Stop> {
        if self.ahead.is_none() && self.lexer.at_config() {
            return self.config(place);
        }
        Ok(String::new())
    }

    /// A group behind its `(`: its elements are those of the scope around.
    fn group(&mut self, place: &Place) -> Result<(usize, usize), Stop> {
        self.deeper(place)?;
        let level = self.level();
        let at = level.scope.elements.len();
        // No author's name begins with `;`.
        level.scope.elements.push(border(&format!(";{at}"), place));
        level.scope.elements.push(border(&format!(";{at}'"), place));
        level.ends.push((at, at + 1));
        self.statements(&[Token::Sign(')'), Token::Sign('}')]);
        self.level().ends.pop();
        self.nesting -= 1;
        if !self.take(&Token::Sign(')')) {
            return self.unexpected("close the group with `)`");
        }
        Ok((at, at + 1))
    }

    /// The ports of a group that its inside uses, if they are more than one.
    fn all(&mut self, end: usize, input: bool) -> Ports {
        let connections = &self.level().scope.connections;
        let used = used_ports(connections, end, end);
        let count = if input { used.0 } else { used.1 };
        Ports {
            given: if count > 1 {
                (0..count).collect()
            } else {
                Vec::new()
            },
            open: false,
            written: count > 1,
        }
    }

    /// `[0]`, `[0,1]`, `[0-2]`, `[]`, or nothing.
    pub(super) fn ports(&mut self) -> Result<Ports, Stop> {
        let mut ports = Ports::default();
        if !self.take(&Token::Sign('[')) {
            return Ok(ports);
        }
        ports.written = true;
        const HELP: &str = "write ports as `[0]`, `[0,1]`, `[0-2]` or `[]`";
        loop {
            if self.take(&Token::Sign(']')) {
                ports.open |= ports.given.is_empty();
                return Ok(ports);
            }
            let (token, place) = self.next();
            match token {
                Token::Sign('*') => ports.open = true,
                Token::Name(number) => {
                    let from = self.port(&number, &place)?;
                    let to = match self.take(&Token::Sign('-')) {
                        false => from,
                        true if *self.peek() == Token::Sign(']') => {
                            ports.open = true;
                            from
                        }
                        true => {
                            let (token, place) = self.next();
                            self.port(&token.shown(), &place)?
                        }
                    };
                    if to < from {
                        return self.stop(&place, format!("ports {from}-{to} run backwards"), HELP);
                    }
                    ports.given.extend(from..=to);
                    if ports.given.len() > self.limits.connections {
                        return self.stop(&place, "too many ports", HELP);
                    }
                }
                token => {
                    self.ahead = Some((token, place));
                    return self.unexpected(HELP);
                }
            }
            if *self.peek() != Token::Sign(']') && !self.take(&Token::Sign(',')) {
                return self.unexpected(HELP);
            }
        }
    }

    fn port(&mut self, number: &str, place: &Place) -> Result<usize, Stop> {
        let most = self.limits.port;
        match number.parse::<usize>() {
            Ok(port) if port <= most => Ok(port),
            _ => self.stop(
                place,
                format!("`{number}` is no port number"),
                format!("write a number from 0 to {most}"),
            ),
        }
    }
}
