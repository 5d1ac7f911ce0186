//! Parses the text of an assertion into a tree in which every node has its position.

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 32;
/// Longest text of an assertion.
const MAX_CHARS: usize = 1000;

/// A mistake in an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AssertionSyntaxError {
    /// Byte offset in the text.
    pub(crate) at: usize,
    /// What is wrong, and what would be right.
    pub(crate) text: String,
}

pub(crate) fn fault<T>(at: usize, text: impl Into<String>) -> Result<T, AssertionSyntaxError> {
    Err(AssertionSyntaxError { at, text: text.into() })
}

/// A part of an assertion, with the byte offset of its start.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AssertionNode {
    pub(crate) at: usize,
    pub(crate) form: AssertionForm,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AssertionForm {
    /// A number with or without a unit, as written.
    Literal(String),
    /// A name: a quantity, or a word.
    Name(String),
    /// A quantity at another point.
    AtPoint(Vec<(usize, String, String)>, usize, String),
    /// A quantity in another run.
    InRun(String, usize, String),
    /// A sum, difference, product or quotient.
    Pair(char, Box<AssertionNode>, Box<AssertionNode>),
}

/// How two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
    /// `==`
    Equal,
    /// `!=`
    Other,
}

impl ComparisonOperator {
    const ALL: [(&'static str, Self); 6] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        ("==", Self::Equal),
        ("!=", Self::Other),
        (">", Self::Above),
        ("<", Self::Below),
    ];

    /// The operator as written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("", |(sign, _)| sign)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum AssertionToken {
    Literal(String),
    Name(String),
    Quoted(String),
    Compare(ComparisonOperator),
    Sign(char),
}

/// Parses a comparison: left side, operator, right side.
pub(crate) fn parse(
    text: &str,
) -> Result<(AssertionNode, ComparisonOperator, AssertionNode), AssertionSyntaxError> {
    if text.len() > MAX_CHARS {
        return fault(0, format!("the assertion has {} characters; use at most {MAX_CHARS}", text.len()));
    }
    let mut parser = AssertionParser { tokens: tokens(text)?, next: 0, end: text.len() };
    let left = parser.sum(0)?;
    let at = parser.at();
    if parser.take_sign('=') {
        return fault(at, "use == to compare");
    }
    let Some(AssertionToken::Compare(comparison)) = parser.take() else {
        return fault(at, "this is not a comparison; write one such as goodput >= 0.98 ceiling");
    };
    let right = parser.sum(0)?;
    match parser.next < parser.tokens.len() {
        true => fault(parser.at(), "the assertion should end here; write one assertion for each comparison"),
        false => Ok((left, comparison, right)),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, AssertionToken)>, AssertionSyntaxError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let (token, length) = if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        } else if first.is_ascii_digit() {
            let length = literal(rest);
            (AssertionToken::Literal(rest[..length].to_owned()), length)
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (AssertionToken::Name(rest[..length].to_owned()), length)
        } else if first == '"' || first == '\'' {
            let Some(length) = rest[1..].find(first) else {
                return fault(at, format!("the quoted text that begins here has no end; add {first}"));
            };
            (AssertionToken::Quoted(rest[1..=length].to_owned()), length + 2)
        } else if let Some((sign, comparison)) =
            ComparisonOperator::ALL.iter().find(|(sign, _)| rest.starts_with(sign))
        {
            (AssertionToken::Compare(*comparison), sign.len())
        } else if "()+-*/.,=".contains(first) {
            (AssertionToken::Sign(first), 1)
        } else {
            return fault(
                at,
                format!("'{first}' is not allowed here; write a comparison such as goodput >= 0.98 ceiling"),
            );
        };
        found.push((at, token));
        rest = &rest[length..];
    }
    Ok(found)
}

/// Length of a number including its unit without a space.
fn literal(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    let unit = |c: char| c.is_alphabetic() || c == '%';
    end += text[end..].find(|c| !unit(c)).unwrap_or(text.len() - end);
    if text[end..].starts_with("/s")
        && !text[end + 2..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    {
        end += 2;
    }
    end
}

struct AssertionParser {
    tokens: Vec<(usize, AssertionToken)>,
    next: usize,
    end: usize,
}

impl AssertionParser {
    fn peek(&self) -> Option<&AssertionToken> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Offset of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn take(&mut self) -> Option<AssertionToken> {
        let token = self.peek().cloned();
        self.next += usize::from(token.is_some());
        token
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&AssertionToken::Sign(sign));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<(), AssertionSyntaxError> {
        let at = self.at();
        if self.take_sign(sign) { Ok(()) } else { fault(at, format!("'{sign}' is missing here")) }
    }

    fn sum(&mut self, depth: usize) -> Result<AssertionNode, AssertionSyntaxError> {
        let mut left = self.product(depth)?;
        while let Some(sign) = ['+', '-'].into_iter().find(|sign| self.take_sign(*sign)) {
            let right = self.product(depth)?;
            left = AssertionNode {
                at: left.at,
                form: AssertionForm::Pair(sign, Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<AssertionNode, AssertionSyntaxError> {
        let mut left = self.single(depth)?;
        loop {
            let sign = if self.take_sign('*') {
                '*'
            } else if self.take_sign('/') {
                '/'
            } else if matches!(left.form, AssertionForm::Literal(_))
                && matches!(self.peek(), Some(AssertionToken::Name(_) | AssertionToken::Sign('(')))
            {
                // Implicit product, such as `0.98 ceiling`.
                '*'
            } else {
                return Ok(left);
            };
            let right = self.single(depth)?;
            left = AssertionNode {
                at: left.at,
                form: AssertionForm::Pair(sign, Box::new(left), Box::new(right)),
            };
        }
    }

    fn single(&mut self, depth: usize) -> Result<AssertionNode, AssertionSyntaxError> {
        let at = self.at();
        if depth > MAX_DEPTH {
            return fault(at, format!("parentheses nested deeper than {MAX_DEPTH}; simplify the assertion"));
        }
        let form = match self.take() {
            Some(AssertionToken::Literal(text)) => AssertionForm::Literal(text),
            Some(AssertionToken::Name(name)) if self.peek() == Some(&AssertionToken::Sign('(')) => {
                self.elsewhere(at, &name)?
            }
            Some(AssertionToken::Name(name)) => AssertionForm::Name(name),
            Some(AssertionToken::Sign('(')) => {
                let inner = self.sum(depth + 1)?;
                self.expect(')')?;
                return Ok(inner);
            }
            _ => return fault(at, "a quantity or a number is missing here, as in goodput >= 0.98 ceiling"),
        };
        Ok(AssertionNode { at, form })
    }

    /// `point(axis = value, …).quantity` or `run("name").quantity`.
    fn elsewhere(&mut self, at: usize, name: &str) -> Result<AssertionForm, AssertionSyntaxError> {
        self.expect('(')?;
        match name {
            "point" => {
                let mut changed = Vec::new();
                loop {
                    let axis_at = self.at();
                    let Some(AssertionToken::Name(axis)) = self.take() else {
                        return fault(
                            axis_at,
                            "the name of an axis is missing here, as in point(streams = 1)",
                        );
                    };
                    self.expect('=')?;
                    let value_at = self.at();
                    let Some(
                        AssertionToken::Literal(value)
                        | AssertionToken::Name(value)
                        | AssertionToken::Quoted(value),
                    ) = self.take()
                    else {
                        return fault(value_at, "a value is missing here, as in point(streams = 1)");
                    };
                    changed.push((axis_at, axis, value));
                    if !self.take_sign(',') {
                        break;
                    }
                }
                self.expect(')')?;
                let (at, quantity) = self.next_quantity()?;
                Ok(AssertionForm::AtPoint(changed, at, quantity))
            }
            "run" => {
                let run_at = self.at();
                let Some(AssertionToken::Quoted(run)) = self.take() else {
                    return fault(run_at, "the name of a run is missing here, as in run(\"baseline\")");
                };
                self.expect(')')?;
                let (at, quantity) = self.next_quantity()?;
                Ok(AssertionForm::InRun(run, at, quantity))
            }
            other => {
                let hint = linerate_config::hint(other, ["point", "run"]);
                fault(at, format!("there is no '{other}(…)'{hint}"))
            }
        }
    }

    fn next_quantity(&mut self) -> Result<(usize, String), AssertionSyntaxError> {
        self.expect('.')?;
        let at = self.at();
        match self.take() {
            Some(AssertionToken::Name(name)) => Ok((at, name)),
            _ => fault(at, "a quantity is missing here, as in point(streams = 1).goodput"),
        }
    }
}
