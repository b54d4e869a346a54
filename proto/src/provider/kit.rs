//! For who writes a provider in Rust: everything but its own work. docs/writing-a-provider.md shows one.
//!
//! Pure as the rest of this package: whoever calls it brings the arguments, the input and the output.

use std::io::{self, BufRead, Write};

use crate::json::Limits;

use super::schema::Schema;
use super::values::Members;
use super::wire::{
    Body, Call, ErrorCode, Execute, Executed, Incoming, ProviderError, Reply, Request, RequestError,
    decode_incoming, encode_reply,
};

/// The bounds of a frame.
const LIMITS: Limits = Limits::PROVIDER;

/// What a provider does. One call at a time; what it declares beyond the common protocol it has to serve by itself.
pub trait Provider {
    /// Its schema, as JSON text.
    fn schema(&self) -> &'static str;

    /// Takes the configuration: once, before the first action, checked against the schema by the host.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn configure(&mut self, config: &Members) -> Result<(), ProviderError>;

    /// Does an action of the schema.
    ///
    /// # Errors
    /// Why it was not done, or not all of it.
    fn execute(&mut self, call: &Execute) -> Result<Executed, ProviderError>;
}

/// A whole program: prints the schema when it is asked to, explains itself to a person, and otherwise serves until its input ends. The
/// answer is the status to exit with.
pub fn run(
    provider: &mut impl Provider,
    arguments: impl IntoIterator<Item = String>,
    input: impl BufRead,
    is_terminal: bool,
    mut output: impl Write,
) -> u8 {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_default();
    if arguments.next().as_deref() == Some("schema") {
        return done(&writeln!(output, "{}", provider.schema()));
    }
    if is_terminal {
        let said = writeln!(
            output,
            "{program} is a provider: a host starts it and speaks to it. Try `quartermaster provider check {program}`."
        );
        return done(&said.and(Err(io::ErrorKind::Unsupported.into())));
    }
    done(&serve(provider, input, output))
}

fn done(result: &io::Result<()>) -> u8 {
    u8::from(result.is_err())
}

/// Answers requests until the host asks for the end or the input ends.
///
/// # Errors
/// The input cannot be read, the output not be written, or the schema is none.
pub fn serve(
    provider: &mut impl Provider,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let schema = Schema::from_probe(provider.schema().as_bytes()).map_err(io::Error::other)?.value;
    let (mut line, mut configured) = (Vec::new(), false);
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let (id, result) = match decode_incoming(&line, &LIMITS) {
            Ok(Incoming::Request(Request { id, call: Call::Shutdown })) => {
                return answer(&mut output, &Reply { id, body: Body::empty() });
            }
            Ok(Incoming::Request(Request { id, call })) => {
                (id, act(provider, &schema, &mut configured, call))
            }
            Err(RequestError { id: Some(id), error }) => (id, Err(error)),
            Ok(Incoming::Blank | Incoming::Cancel(_) | Incoming::Unknown) | Err(_) => continue,
        };
        let body = result.unwrap_or_else(|error| Body::Error(Box::new(error)));
        answer(&mut output, &Reply { id, body })?;
    }
}

fn act(
    provider: &mut impl Provider,
    schema: &Schema,
    configured: &mut bool,
    call: Call,
) -> Result<Body, ProviderError> {
    match call {
        Call::Describe => Ok(Body::described(schema)),
        Call::Configure(configure) => {
            provider.configure(&configure.config)?;
            *configured = true;
            Ok(Body::empty())
        }
        Call::Execute(_) if !*configured => {
            Err(ProviderError::new(ErrorCode::NotConfigured, "configure comes first"))
        }
        Call::Execute(execute) if !schema.actions.contains_key(&execute.action) => {
            let message = format!("no such action: {}", execute.action);
            Err(ProviderError::new(ErrorCode::UnknownAction, message))
        }
        Call::Execute(execute) => provider.execute(&execute).map(Body::executed),
        other => {
            let message = format!("no such method: {}", other.method());
            Err(ProviderError::new(ErrorCode::UnknownMethod, message))
        }
    }
}

fn answer(output: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let id = reply.id;
    let bytes = encode_reply(reply, &LIMITS).or_else(|error| {
        let error = ProviderError::new(ErrorCode::Internal, error.to_string());
        encode_reply(&Reply { id, body: Body::Error(Box::new(error)) }, &LIMITS)
    });
    output.write_all(&bytes.map_err(io::Error::other)?)?;
    output.flush()
}
