//! Lists of rules that no diagram holds: a filter whose diagram would pass the budget is asked as a whole, by words of the packet,
//! and its answer is a variable like any field ([`crate::field::Var::Listed`]).
//!
//! What follows is synthesised behind each answer. A write before the filter replaces words of the question, as it does those of a rewriter
//! ([`crate::action::Stateful`]); the rules stay what they are. To the function a list is a `CLASSIFIER` (`millrace_classify`), which lays it
//! out as a diagram of its own or, beyond its budget, as cut trees.

use std::collections::HashMap;

use millrace_classify::{Field, Key, Order, Rules};

use crate::action::Value;
use crate::field::Var;

/// Lists of a configuration, at most: each is a state object of the function.
pub const MOST_LISTS: usize = 32;

/// A list: the first rule that fits a packet says the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// the filter
    pub element: usize,
    /// fields that rules test, in the order of the rules' words
    pub fields: Vec<Var>,
    /// the rules; answers are their classes, 0 where none fits
    pub rules: Rules,
    /// the filter's output for each answer; none: it drops
    pub outputs: Vec<Option<usize>>,
}

/// A question to a list: what takes the place of its fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Question {
    /// the list's number
    pub list: usize,
    /// a value for each of its fields
    pub words: Vec<Value>,
}

/// What becomes of an answer where fields become other values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// another answer, or the same
    Answer(Var),
    /// it is known
    Class(u64),
}

/// All lists and questions of a synthesis, numbered.
#[derive(Default)]
pub struct Lists {
    lists: Vec<List>,
    questions: Vec<Question>,
    numbers: HashMap<Question, u32>,
}

impl Lists {
    /// An empty list over fields of at most 32 bits, with so many answers and room for so many boxes.
    #[must_use]
    pub fn rules(fields: &[Var], answers: usize, most: usize) -> Option<Rules> {
        let named = (0_u32..).zip(fields).map(|(n, var)| Field {
            name: crate::emit::condition::name(*var),
            offset: 4 * n,
            bytes: 4,
            order: Order::Host,
        });
        let key = Key::new(4 * fields.len() as u32, named.collect()).ok()?;
        Some(Rules::new(key, answers as u32, most))
    }

    /// Boxes of all lists.
    #[must_use]
    pub fn boxes(&self) -> usize {
        self.lists.iter().map(|l| l.rules.len()).sum()
    }

    /// The answer of a list to a packet as it comes to the filter; none where there are too many lists.
    pub fn ask(&mut self, list: List) -> Option<Var> {
        let number = match self.lists.iter().position(|l| *l == list) {
            Some(number) => number,
            None if self.lists.len() >= MOST_LISTS => return None,
            None => {
                self.lists.push(list);
                self.lists.len() - 1
            }
        };
        let fields = &self.lists.get(number)?.fields;
        let words = fields.iter().map(|var| Value::Field(*var, 0)).collect();
        Some(self.answer(Question {
            list: number,
            words,
        }))
    }

    fn answer(&mut self, question: Question) -> Var {
        // Words of a flow decide it for all packets of the flow.
        let flow = question.words.iter().all(|word| match word {
            Value::Constant(_) => true,
            Value::Field(var, _) => var.of_flow(),
        });
        let next = self.questions.len() as u32;
        let number = *self.numbers.entry(question.clone()).or_insert(next);
        if number == next {
            self.questions.push(question);
        }
        Var::Listed(number, flow)
    }

    /// A question by the number of its answer.
    #[must_use]
    pub fn question(&self, number: u32) -> Option<&Question> {
        self.questions.get(number as usize)
    }

    /// A list by its number.
    #[must_use]
    pub fn list(&self, number: usize) -> Option<&List> {
        self.lists.get(number)
    }

    /// The list that an answer is of.
    #[must_use]
    pub fn of(&self, answer: Var) -> Option<(&Question, &List)> {
        let Var::Listed(number, _) = answer else {
            return None;
        };
        let question = self.question(number)?;
        Some((question, self.list(question.list)?))
    }

    /// Whether a variable is a field, or an answer that a field has a part in.
    #[must_use]
    pub fn depends(&self, var: Var, on: &dyn Fn(Var) -> bool) -> bool {
        let word = |word: &Value| matches!(word, Value::Field(read, _) if on(*read));
        match self.of(var) {
            Some((question, _)) => question.words.iter().any(word),
            None => on(var),
        }
    }

    /// The answer for packets before fields become other values, all at once.
    pub fn moved(&mut self, answer: Var, new: &dyn Fn(Var) -> Option<Value>) -> Moved {
        let Some((question, list)) = self.of(answer) else {
            return Moved::Answer(answer);
        };
        let words: Vec<Value> = { question.words.iter() }
            .map(|word| match word {
                Value::Field(var, _) => new(*var).map_or(*word, |to| word.before(*var, to)),
                Value::Constant(_) => *word,
            })
            .collect();
        let known: Option<Vec<u32>> = { words.iter() }
            .map(|word| match word {
                Value::Constant(number) => Some(*number as u32),
                Value::Field(..) => None,
            })
            .collect();
        if let Some(known) = known {
            return Moved::Class(u64::from(list.rules.scan(&known)));
        }
        let question = Question {
            list: question.list,
            words,
        };
        Moved::Answer(self.answer(question))
    }

    /// The answer to a packet with some values of fields.
    #[must_use]
    pub fn find(&self, answer: Var, value: &dyn Fn(Var) -> u64) -> u64 {
        let Some((question, list)) = self.of(answer) else {
            return 0;
        };
        let words: Vec<u32> = { question.words.iter() }
            .map(|word| match *word {
                Value::Constant(number) => number as u32,
                Value::Field(var, more) => {
                    (value(var).wrapping_add_signed(more) & var.most()) as u32
                }
            })
            .collect();
        u64::from(list.rules.scan(&words))
    }
}
