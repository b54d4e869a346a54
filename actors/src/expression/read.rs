//! HCL to expressions. What is not understood is refused by its name and line.

use hcl::edit::Span;
use hcl::edit::expr::{
    BinaryOperator, Expression as Hcl, ObjectKey, Traversal, TraversalOperator, UnaryOperator,
};
use hcl::edit::template::{Element, Strip, Template};
use quartermaster_proto::provider::{Number, Value};

use super::tree::{Access, Expression, ExpressionError, Kind, Operator, Reference};

/// Nesting of one expression.
const MAX_DEPTH: usize = 64;

/// Where lines of a text begin.
#[derive(Debug, Clone)]
pub struct Lines {
    starts: Vec<usize>,
    first: usize,
}

impl Lines {
    /// The lines of a file.
    pub fn new(text: &str) -> Self {
        Self::from_line(text, 1)
    }

    /// The lines of a part of a file that begins on this line.
    pub fn from_line(text: &str, first: usize) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(ends).collect(), first }
    }

    /// The line of a byte, counted from 1.
    pub fn at(&self, offset: usize) -> usize {
        self.first + self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The line something begins on.
    pub fn of(&self, part: &impl Span) -> usize {
        part.span().map_or(self.first, |span| self.at(span.start))
    }
}

impl Expression {
    /// Takes an expression of a parsed file.
    ///
    /// # Errors
    /// What is not supported, by its name and line.
    pub fn read(hcl: &Hcl, lines: &Lines) -> Result<Self, ExpressionError> {
        Reader { lines, line: lines.of(hcl), depth: 0 }.expression(hcl)
    }

    /// Takes a text with `${…}` in it. A text that is one such and nothing else keeps the type of what it refers to.
    ///
    /// # Errors
    /// What is no template or not supported, by its name and line; `line` is that of the text.
    pub fn text(text: &str, line: usize) -> Result<Self, ExpressionError> {
        let lines = Lines::from_line(text, line);
        let template = text.parse::<Template>().map_err(|error| {
            let at = line + error.location().line().saturating_sub(1);
            ExpressionError::new(at, format!("not a text with ${{…}}: {}", error.message()))
        })?;
        Reader { lines: &lines, line, depth: 0 }.template(&template)
    }
}

/// Knows the line of what encloses a part, for parts that have none.
#[derive(Clone, Copy)]
struct Reader<'a> {
    lines: &'a Lines,
    line: usize,
    depth: usize,
}

impl Reader<'_> {
    fn at(self, part: &impl Span) -> Self {
        let line = part.span().map_or(self.line, |span| self.lines.at(span.start));
        Self { line, ..self }
    }

    fn unsupported<T>(self, what: &str) -> Result<T, ExpressionError> {
        Err(ExpressionError::new(self.line, format!("{what} is not supported")))
    }

    const fn made(self, kind: Kind) -> Expression {
        Expression { line: self.line, kind }
    }

    fn expression(self, hcl: &Hcl) -> Result<Expression, ExpressionError> {
        let here = Self { depth: self.depth + 1, ..self.at(hcl) };
        if here.depth > MAX_DEPTH {
            return here.unsupported("nesting as deep as this");
        }
        let kind = match hcl {
            Hcl::Null(_) => Kind::Literal(Value::Null),
            Hcl::Bool(flag) => Kind::Literal((*flag.value()).into()),
            Hcl::Number(number) => {
                let written = number
                    .as_repr()
                    .map_or_else(|| number.value().to_string(), |written| (**written).to_owned());
                Kind::Literal(here.number(&written)?)
            }
            Hcl::String(text) => Kind::Literal(text.value().as_str().into()),
            Hcl::Array(items) => {
                Kind::List(items.iter().map(|item| here.expression(item)).collect::<Result<_, _>>()?)
            }
            Hcl::Object(object) => {
                let each =
                    object.iter().map(|(key, value)| Ok((here.key(key)?, here.expression(value.expr())?)));
                Kind::Object(each.collect::<Result<_, ExpressionError>>()?)
            }
            Hcl::StringTemplate(template) => return here.elements(template.iter()),
            Hcl::HeredocTemplate(heredoc) => {
                let mut heredoc = heredoc.as_ref().clone();
                heredoc.dedent();
                return here.template(&heredoc.template);
            }
            Hcl::Parenthesis(inner) => return here.expression(inner.inner()),
            Hcl::Variable(name) => Kind::Reference(Reference {
                line: here.line,
                path: vec![Access::Name(name.value().as_str().to_owned())],
            }),
            Hcl::Traversal(traversal) => Kind::Reference(here.traversal(traversal)?),
            Hcl::Conditional(choice) => Kind::Conditional(Box::new([
                here.expression(&choice.cond_expr)?,
                here.expression(&choice.true_expr)?,
                here.expression(&choice.false_expr)?,
            ])),
            Hcl::UnaryOp(operation) => return here.unary(*operation.operator.value(), &operation.expr),
            Hcl::BinaryOp(operation) => {
                let operator = here.operator(*operation.operator.value())?;
                let both = [here.expression(&operation.lhs_expr)?, here.expression(&operation.rhs_expr)?];
                Kind::Binary(operator, Box::new(both))
            }
            Hcl::FuncCall(call) if call.name.namespace.is_empty() && call.name.name.as_str() == "try" => {
                Kind::Try(call.args.iter().map(|item| here.expression(item)).collect::<Result<_, _>>()?)
            }
            Hcl::FuncCall(call) => {
                let spaces = call.name.namespace.iter().map(|space| format!("{}::", space.value()));
                let name = format!("{}{}", spaces.collect::<String>(), call.name.name.value());
                return here.unsupported(&format!("the function `{name}`"));
            }
            Hcl::ForExpr(_) => return here.unsupported("a `for` expression"),
        };
        Ok(here.made(kind))
    }

    /// A number as it was written, digit for digit.
    fn number(self, written: &str) -> Result<Value, ExpressionError> {
        let number = written.trim().parse::<Number>();
        number.map(Value::Number).map_err(|error| ExpressionError::new(self.line, error.to_string()))
    }

    fn key(self, key: &ObjectKey) -> Result<Expression, ExpressionError> {
        match key {
            ObjectKey::Ident(name) => Ok(self.made(Kind::Literal(name.value().as_str().into()))),
            ObjectKey::Expression(Hcl::Variable(name)) => {
                Ok(self.made(Kind::Literal(name.value().as_str().into())))
            }
            ObjectKey::Expression(expression) => self.expression(expression),
        }
    }

    fn traversal(self, traversal: &Traversal) -> Result<Reference, ExpressionError> {
        let Hcl::Variable(root) = &traversal.expr else {
            return self.unsupported("access to a part of something that is no reference");
        };
        let mut path = vec![Access::Name(root.value().as_str().to_owned())];
        for operator in &traversal.operators {
            path.push(match operator.value() {
                TraversalOperator::GetAttr(name) => Access::Name(name.value().as_str().to_owned()),
                TraversalOperator::Index(Hcl::String(name)) => Access::Name(name.value().clone()),
                TraversalOperator::Index(Hcl::Number(number)) => {
                    let index = number.value().as_u64().and_then(|index| usize::try_from(index).ok());
                    Access::Index(index.ok_or_else(|| {
                        ExpressionError::new(self.line, "an index is a whole number from 0 on")
                    })?)
                }
                TraversalOperator::Index(_) => return self.unsupported("an index that is computed"),
                TraversalOperator::LegacyIndex(index) => {
                    Access::Index(usize::try_from(*index.value()).unwrap_or(usize::MAX))
                }
                TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => {
                    return self.unsupported("a splat (`*`)");
                }
            });
        }
        Ok(Reference { line: self.line, path })
    }

    fn unary(self, operator: UnaryOperator, hcl: &Hcl) -> Result<Expression, ExpressionError> {
        let inner = self.expression(hcl)?;
        match (operator, inner.as_literal()) {
            (UnaryOperator::Not, _) => Ok(self.made(Kind::Not(Box::new(inner)))),
            (UnaryOperator::Neg, Some(Value::Number(number))) => {
                let text = number.as_str();
                let negative = text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned);
                self.number(&negative).map(|value| self.made(Kind::Literal(value)))
            }
            (UnaryOperator::Neg, _) => self.unsupported("the operator `-`"),
        }
    }

    fn operator(self, operator: BinaryOperator) -> Result<Operator, ExpressionError> {
        Ok(match operator {
            BinaryOperator::Eq => Operator::Equal,
            BinaryOperator::NotEq => Operator::NotEqual,
            BinaryOperator::Less => Operator::Less,
            BinaryOperator::LessEq => Operator::LessOrEqual,
            BinaryOperator::Greater => Operator::Greater,
            BinaryOperator::GreaterEq => Operator::GreaterOrEqual,
            BinaryOperator::And => Operator::And,
            BinaryOperator::Or => Operator::Or,
            BinaryOperator::Div
            | BinaryOperator::Minus
            | BinaryOperator::Mod
            | BinaryOperator::Mul
            | BinaryOperator::Plus => {
                return self.unsupported(&format!("the operator `{}`", operator.as_str()));
            }
        })
    }

    fn template(self, template: &Template) -> Result<Expression, ExpressionError> {
        self.elements(template.iter())
    }

    fn elements<'e>(
        self,
        elements: impl Iterator<Item = &'e Element>,
    ) -> Result<Expression, ExpressionError> {
        let elements: Vec<&Element> = elements.collect();
        let mut parts: Vec<Expression> = Vec::new();
        // A `~` takes the white space beside it away.
        let mut strips = false;
        for (position, element) in elements.iter().enumerate() {
            match element {
                Element::Literal(text) => {
                    let mut text = text.value().as_str();
                    if strips {
                        text = text.trim_start();
                    }
                    if elements.get(position + 1).is_some_and(|next| strip(next).strip_start()) {
                        text = text.trim_end();
                    }
                    strips = false;
                    parts.push(self.made(Kind::Literal(text.into())));
                }
                Element::Interpolation(interpolation) => {
                    parts.push(self.at(interpolation).expression(&interpolation.expr)?);
                    strips = strip(element).strip_end();
                }
                Element::Directive(directive) => {
                    let what = match directive.as_ref() {
                        hcl::edit::template::Directive::If(_) => "the template directive `%{ if }`",
                        hcl::edit::template::Directive::For(_) => "the template directive `%{ for }`",
                    };
                    return self.at(directive).unsupported(what);
                }
            }
        }
        match parts.as_slice() {
            [] => Ok(self.made(Kind::Literal("".into()))),
            [_] => Ok(parts.remove(0)),
            _ => Ok(self.made(Kind::Template(parts))),
        }
    }
}

fn strip(element: &Element) -> Strip {
    match element {
        Element::Interpolation(interpolation) => interpolation.strip,
        Element::Literal(_) | Element::Directive(_) => Strip::None,
    }
}
