//! Regular expressions as data tests use them, by backtracking: `.`, classes, `\d \w \s`, `* + ?`, groups, alternatives,
//! `(?!…)`, anchors.

#[derive(Debug)]
enum Node {
    Byte(u8),
    Any,
    Class(bool, Vec<(u8, u8)>),
    Group(Vec<Vec<(Node, usize, usize)>>),
    NotAhead(Vec<Vec<(Node, usize, usize)>>),
    Begin,
    End,
    Boundary,
}

/// An expression.
#[derive(Debug)]
pub struct Pattern(Vec<Vec<(Node, usize, usize)>>);

const DIGITS: [(u8, u8); 1] = [(b'0', b'9')];
const WORD: [(u8, u8); 4] = [(b'0', b'9'), (b'A', b'Z'), (b'a', b'z'), (b'_', b'_')];
const BLANK: [(u8, u8); 2] = [(9, 13), (b' ', b' ')];

fn escape(b: u8) -> Node {
    match b {
        b'd' => Node::Class(false, DIGITS.to_vec()),
        b'D' => Node::Class(true, DIGITS.to_vec()),
        b'w' => Node::Class(false, WORD.to_vec()),
        b's' => Node::Class(false, BLANK.to_vec()),
        b'S' => Node::Class(true, BLANK.to_vec()),
        b'b' => Node::Boundary,
        b't' => Node::Byte(b'\t'),
        b'n' => Node::Byte(b'\n'),
        other => Node::Byte(other),
    }
}

impl Pattern {
    /// Reads an expression.
    pub fn new(text: &str) -> Self {
        let mut at = 0;
        let all = Self::alternatives(text.as_bytes(), &mut at);
        assert_eq!(at, text.len(), "pattern `{text}`");
        Self(all)
    }

    fn alternatives(text: &[u8], at: &mut usize) -> Vec<Vec<(Node, usize, usize)>> {
        let mut all = vec![Vec::new()];
        while let Some(&b) = text.get(*at) {
            *at += 1;
            let node = match b {
                b')' => {
                    *at -= 1;
                    break;
                }
                b'|' => {
                    all.push(Vec::new());
                    continue;
                }
                b'.' => Node::Any,
                b'^' => Node::Begin,
                b'$' => Node::End,
                b'\\' => {
                    *at += 1;
                    escape(text[*at - 1])
                }
                b'[' => {
                    let negated = text[*at] == b'^';
                    *at += usize::from(negated);
                    let mut ranges = Vec::new();
                    while text[*at] != b']' {
                        let low = text[*at];
                        if low == b'\\' {
                            if let Node::Class(_, more) = escape(text[*at + 1]) {
                                ranges.extend(more);
                            } else {
                                ranges.push((text[*at + 1], text[*at + 1]));
                            }
                            *at += 2;
                        } else if text[*at + 1] == b'-' && text[*at + 2] != b']' {
                            ranges.push((low, text[*at + 2]));
                            *at += 3;
                        } else {
                            ranges.push((low, low));
                            *at += 1;
                        }
                    }
                    *at += 1;
                    Node::Class(negated, ranges)
                }
                b'(' => {
                    let not = text[*at..].starts_with(b"?!");
                    if text[*at..].starts_with(b"?") {
                        *at += 2;
                    }
                    let inner = Self::alternatives(text, at);
                    *at += 1;
                    if not {
                        Node::NotAhead(inner)
                    } else {
                        Node::Group(inner)
                    }
                }
                b => Node::Byte(b),
            };
            let (least, most) = match text.get(*at) {
                Some(b'*') => (0, usize::MAX),
                Some(b'+') => (1, usize::MAX),
                Some(b'?') => (0, 1),
                _ => (1, 1),
            };
            *at += usize::from((least, most) != (1, 1));
            // The shortest match is no other match of the whole.
            *at += usize::from(most != 1 && text.get(*at) == Some(&b'?'));
            all.last_mut().unwrap().push((node, least, most));
        }
        all
    }

    /// Whether the whole text fits.
    pub fn fits(&self, text: &str) -> bool {
        any(&self.0, text.as_bytes(), 0, &mut |at| at == text.len())
    }

    /// Whether a part of the text fits.
    pub fn found(&self, text: &str) -> bool {
        (0..=text.len()).any(|at| any(&self.0, text.as_bytes(), at, &mut |_| true))
    }
}

type Then<'a> = &'a mut dyn FnMut(usize) -> bool;

fn any(all: &[Vec<(Node, usize, usize)>], text: &[u8], at: usize, then: Then<'_>) -> bool {
    all.iter().any(|one| sequence(one, text, at, then))
}

fn sequence(nodes: &[(Node, usize, usize)], text: &[u8], at: usize, then: Then<'_>) -> bool {
    match nodes.split_first() {
        None => then(at),
        Some(((node, least, most), rest)) => repeat(node, *least, *most, text, at, &mut |at| {
            sequence(rest, text, at, then)
        }),
    }
}

fn repeat(node: &Node, least: usize, most: usize, text: &[u8], at: usize, then: Then<'_>) -> bool {
    if most > 0 {
        let more = single(node, text, at, &mut |next| {
            (next > at || least > 0)
                && repeat(
                    node,
                    least.saturating_sub(1),
                    most.saturating_sub(1),
                    text,
                    next,
                    then,
                )
        });
        if more {
            return true;
        }
    }
    least == 0 && then(at)
}

fn single(node: &Node, text: &[u8], at: usize, then: Then<'_>) -> bool {
    let word = |at: Option<usize>| {
        let b = at.and_then(|at| text.get(at));
        b.is_some_and(|b| WORD.iter().any(|(l, h)| (l..=h).contains(&b)))
    };
    let step = match node {
        Node::Byte(b) => text.get(at) == Some(b),
        Node::Any => at < text.len(),
        Node::Class(negated, ranges) => text
            .get(at)
            .is_some_and(|b| ranges.iter().any(|(l, h)| (l..=h).contains(&b)) != *negated),
        Node::Group(inner) => return any(inner, text, at, then),
        Node::NotAhead(inner) => return !any(inner, text, at, &mut |_| true) && then(at),
        Node::Begin => return at == 0 && then(at),
        Node::End => return at == text.len() && then(at),
        Node::Boundary => return word(at.checked_sub(1)) != word(Some(at)) && then(at),
    };
    step && then(at + 1)
}

#[test]
fn expressions() {
    let fits = |pattern: &str, text: &str| Pattern::new(pattern).fits(text);
    assert!(fits(r"a.c[0-9]+(x|yz)?\.", "abc42yz.") && !fits("a+", "aab"));
    assert!(fits(r"(?!10,)\d+", "1024") && !fits(r"(?!10)\d+", "1024"));
    assert!(fits("!.*", "!data") && !fits("!.*", "data") && fits(".*", ""));
    assert!(Pattern::new(r"\bb").found("a b") && !Pattern::new("^b").found("ab"));
}
