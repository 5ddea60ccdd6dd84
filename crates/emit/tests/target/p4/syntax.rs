//! Reads the subset of P4_16 that the target prints. What is not of it is a panic with the words around it.

#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// a number, and its bits where it says so
    Number(u128, Option<usize>),
    Bool(bool),
    Name(String),
    Slice(Box<Expr>, usize, usize),
    Cast(usize, Box<Expr>),
    Not(Box<Expr>),
    Two(String, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// the packet's first bits
    Ahead(usize),
}

#[derive(Clone, Debug)]
pub enum Statement {
    /// a variable of so many bits, 0: a bool
    Declare(String, usize, Expr),
    /// name, bits of it
    Assign(String, Option<(usize, usize)>, Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    /// method, arguments
    Call(String, Vec<Expr>),
}

#[derive(Debug)]
pub struct State {
    pub body: Vec<Statement>,
    /// what is looked at, and from, to, state; without one: on to that state
    pub select: Option<Expr>,
    pub cases: Vec<(u128, u128, String)>,
    pub default: String,
}

#[derive(Default, Debug)]
pub struct Program {
    pub constants: Vec<(String, usize, Expr)>,
    /// fields of the header, in order
    pub carrier: Vec<(String, usize)>,
    /// fields of the metadata
    pub metadata: Vec<(String, usize)>,
    pub states: std::collections::BTreeMap<String, State>,
    pub registers: Vec<(String, usize)>,
    pub apply: Vec<Statement>,
}

struct Reader {
    words: Vec<String>,
    at: usize,
}

fn words(text: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        if let Some(r) = rest.strip_prefix("/*") {
            rest = &r[r.find("*/").expect("an open comment") + 2..];
        } else if rest.starts_with("//") || rest.starts_with('#') {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (word, r) = rest.split_at(end.unwrap_or(rest.len()));
            all.push(word.into());
            rest = r;
        } else {
            let long = ["++", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", ".."];
            let found = long.iter().find(|l| rest.starts_with(**l));
            let n = found.map_or(c.len_utf8(), |l| l.len());
            all.push(rest[..n].into());
            rest = &rest[n..];
        }
    }
    all
}

pub fn read(text: &str) -> Program {
    let mut r = Reader {
        words: words(text),
        at: 0,
    };
    r.program()
}

impl Reader {
    fn peek(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.words.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn fail(&self, what: &str) -> ! {
        let from = self.at.saturating_sub(6);
        let to = (self.at + 6).min(self.words.len());
        panic!("{what} at: {}", self.words[from..to].join(" "))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        self.at += usize::from(found);
        found
    }

    fn must(&mut self, word: &str) {
        if !self.take(word) {
            self.fail(&format!("no `{word}`"));
        }
    }

    fn all(&mut self, words: &[&str]) {
        words.iter().for_each(|w| self.must(w));
    }

    fn count(&mut self) -> usize {
        let word = self.next();
        word.parse().unwrap_or_else(|_| self.fail("no number"))
    }

    fn bits(&mut self) -> usize {
        self.must("bit");
        self.must("<");
        let n = self.count();
        // As in P4's own grammar, `>>` closes two.
        match self.words.get_mut(self.at) {
            Some(word) if word == ">>" => *word = ">".into(),
            _ => self.must(">"),
        }
        n
    }

    /// Skips what is in parentheses, the first of which was read.
    fn parameters(&mut self) {
        while !self.take(")") {
            self.at += 1;
        }
    }

    fn fields(&mut self) -> Vec<(String, usize)> {
        let mut all = Vec::new();
        self.must("{");
        while !self.take("}") {
            let bits = self.bits();
            all.push((self.next(), bits));
            self.must(";");
        }
        all
    }

    fn program(&mut self) -> Program {
        let mut p = Program::default();
        while self.at < self.words.len() {
            match self.next().as_str() {
                "const" => {
                    let bits = self.bits();
                    let name = self.next();
                    self.must("=");
                    let value = self.expression(0);
                    self.must(";");
                    p.constants.push((name, bits, value));
                }
                "header" => {
                    assert_eq!(self.next(), "carrier_t");
                    p.carrier = self.fields();
                }
                "struct" => match self.next().as_str() {
                    "metadata" => p.metadata = self.fields(),
                    "headers" => {
                        self.all(&["{", "carrier_t", "carrier", ";", "}"]);
                    }
                    _ => self.fail("another struct"),
                },
                "parser" => self.parser(&mut p),
                "control" => self.control(&mut p),
                "V1Switch" => {
                    let order = [
                        "looking",
                        "checking",
                        "sequencing",
                        "leaving",
                        "summing",
                        "writing",
                    ];
                    self.must("(");
                    for (at, name) in order.into_iter().enumerate() {
                        if at > 0 {
                            self.must(",");
                        }
                        self.all(&[name, "(", ")"]);
                    }
                    self.all(&[")", "main", ";"]);
                }
                _ => self.fail("another declaration"),
            }
        }
        p
    }

    fn parser(&mut self, p: &mut Program) {
        self.must("looking");
        self.must("(");
        self.parameters();
        self.must("{");
        while self.take("state") {
            let name = self.next();
            self.must("{");
            let mut state = State {
                body: Vec::new(),
                select: None,
                cases: Vec::new(),
                default: String::new(),
            };
            while !self.take("transition") {
                self.statement(&mut state.body);
            }
            if self.take("select") {
                self.must("(");
                state.select = Some(self.expression(0));
                self.must(")");
                self.must("{");
                while !self.take("}") {
                    if self.take("default") {
                        self.must(":");
                        state.default = self.next();
                    } else {
                        let from = self.number();
                        self.must("..");
                        let to = self.number();
                        self.must(":");
                        state.cases.push((from, to, self.next()));
                    }
                    self.must(";");
                }
            } else {
                state.default = self.next();
                self.must(";");
            }
            self.must("}");
            p.states.insert(name, state);
        }
        self.must("}");
    }

    fn number(&mut self) -> u128 {
        match self.expression(9) {
            Expr::Number(n, _) => n,
            _ => self.fail("no number"),
        }
    }

    fn control(&mut self, p: &mut Program) {
        let name = self.next();
        self.must("(");
        self.parameters();
        self.must("{");
        while self.take("register") {
            self.must("<");
            let bits = self.bits();
            self.all(&[">", "(", "1", ")"]);
            p.registers.push((self.next(), bits));
            self.must(";");
        }
        self.must("apply");
        let body = self.block();
        self.must("}");
        match name.as_str() {
            "sequencing" => p.apply = body,
            "writing" => assert!(
                matches!(&body[..], [Statement::Call(m, args)] if m == "packet.emit"
                    && args[..] == [Expr::Name("hdr.carrier".into())])
            ),
            _ => assert!(body.is_empty(), "{name} does something"),
        }
    }

    fn block(&mut self) -> Vec<Statement> {
        let mut all = Vec::new();
        self.must("{");
        while !self.take("}") {
            self.statement(&mut all);
        }
        all
    }

    fn statement(&mut self, all: &mut Vec<Statement>) {
        if self.take("@") {
            self.must("atomic");
            all.extend(self.block());
        } else if self.take("if") {
            self.must("(");
            let condition = self.expression(0);
            self.must(")");
            let then = self.block();
            let mut other = Vec::new();
            if self.take("else") {
                match self.peek() {
                    "if" => self.statement(&mut other),
                    _ => other = self.block(),
                }
            }
            all.push(Statement::If(condition, then, other));
        } else if self.peek() == "bit" || self.peek() == "bool" {
            let bits = match self.take("bool") {
                true => 0,
                false => self.bits(),
            };
            let name = self.next();
            self.must("=");
            let value = self.expression(0);
            self.must(";");
            all.push(Statement::Declare(name, bits, value));
        } else {
            let name = self.path();
            if self.take("(") {
                let mut args = Vec::new();
                while !self.take(")") {
                    args.push(self.expression(0));
                    self.take(",");
                }
                all.push(Statement::Call(name, args));
            } else {
                let part = self.take("[").then(|| self.part());
                self.must("=");
                let value = self.expression(0);
                all.push(Statement::Assign(name, part, value));
            }
            self.must(";");
        }
    }

    fn part(&mut self) -> (usize, usize) {
        let high = self.count();
        self.must(":");
        let low = self.count();
        self.must("]");
        (high, low)
    }

    fn path(&mut self) -> String {
        let mut name = self.next();
        while self.take(".") {
            name = format!("{name}.{}", self.next());
        }
        name
    }

    /// Precedence climbing, by the order of P4's grammar.
    fn expression(&mut self, least: u32) -> Expr {
        let mut left = self.single();
        loop {
            let strength = match self.peek() {
                "?" => 0,
                "||" => 1,
                "&&" => 2,
                "|" => 3,
                "^" => 4,
                "&" => 5,
                "==" | "!=" => 6,
                "<" | "<=" | ">" | ">=" => 7,
                "<<" | ">>" => 8,
                "++" | "+" | "-" => 9,
                "*" => 10,
                _ => return left,
            };
            if strength < least || (strength == 0 && least > 0) {
                return left;
            }
            let sign = self.next();
            if sign == "?" {
                let then = self.expression(0);
                self.must(":");
                let other = self.expression(0);
                return Expr::Choice(Box::new(left), Box::new(then), Box::new(other));
            }
            let right = self.expression(strength + 1);
            left = Expr::Two(sign, Box::new(left), Box::new(right));
        }
    }

    fn single(&mut self) -> Expr {
        let mut e = if self.take("!") {
            return Expr::Not(Box::new(self.single()));
        } else if self.take("(") {
            if self.peek() == "bit" && self.words.get(self.at + 1).is_some_and(|w| w == "<") {
                let bits = self.bits();
                self.must(")");
                return Expr::Cast(bits, Box::new(self.single()));
            }
            let e = self.expression(0);
            self.must(")");
            e
        } else if self.peek().starts_with(|c: char| c.is_ascii_digit()) {
            let word = self.next();
            let (bits, digits) = match word.split_once('w') {
                Some((bits, digits)) => (bits.parse().ok(), digits),
                None => (None, word.as_str()),
            };
            let value = match digits.strip_prefix("0x") {
                Some(hex) => u128::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            Expr::Number(value.unwrap_or_else(|_| self.fail("no number")), bits)
        } else {
            match self.path().as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "packet.lookahead" => {
                    self.must("<");
                    let bits = self.bits();
                    self.all(&[">", "(", ")"]);
                    Expr::Ahead(bits)
                }
                "" => self.fail("nothing"),
                name => Expr::Name(name.into()),
            }
        };
        while self.take("[") {
            let (high, low) = self.part();
            e = Expr::Slice(Box::new(e), high, low);
        }
        e
    }
}
