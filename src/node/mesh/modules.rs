//! `quartermaster mesh publish`, `assign` and `unassign`.

use std::path::{Path, PathBuf};

use quartermaster_node::client::bus::Bus;
use quartermaster_node::mesh::{
    MeshError, Order, Published, assign as put_on, bundle, object_name, plan_faults, plan_for,
    publish_archive, unassign as take_off,
};
use quartermaster_node::offline::{read_file, read_templates};
use quartermaster_proto::mesh::Kind;
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::plan::{Digest, ModuleFile, Placement, Reference, read_module_file};
use quartermaster_proto::mesh::value::Json;
use serde_json::json;

use super::super::serve::Chain;
use super::place::{SiteArgs, clean, json as print, work};
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// Arguments of `quartermaster mesh publish`.
#[derive(Debug, Clone, clap::Args)]
pub struct PublishArgs {
    /// Folder of templates, or an archive of them (tar, plain or compressed with gzip or zstd)
    #[arg(value_name = "DIR|ARCHIVE")]
    templates: PathBuf,
    /// Name in the object store [default: of a folder its name and the digest's beginning, of an archive the file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print reference and digest as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `quartermaster mesh assign`.
#[derive(Debug, Clone, clap::Args)]
pub struct AssignArgs {
    /// The machine
    #[arg(value_name = "NODE")]
    node: String,
    /// The module
    #[arg(value_name = "MODULE")]
    module: String,
    /// What the module declares, as JSON; without it nothing of it is filled
    #[arg(long = "module", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Its templates: a reference, as publish prints it, or a folder that is published now [default: what FILE says]
    #[arg(long, value_name = "REFERENCE|DIR", requires = "file")]
    templates: Option<String>,
    /// A placement value of this machine: `port.http=3000`, `dir.data=/var/lib/forge`; may be given more than once
    #[arg(long = "set", value_name = "KIND.NAME=VALUE", value_parser = placed, requires = "file")]
    placement: Vec<(Kind, String, Json)>,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `quartermaster mesh unassign`.
#[derive(Debug, Clone, clap::Args)]
pub struct UnassignArgs {
    /// The machine
    #[arg(value_name = "NODE")]
    node: String,
    /// The module
    #[arg(value_name = "MODULE")]
    module: String,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Reads `KIND.NAME=VALUE`; what is no JSON is a string.
fn placed(text: &str) -> Result<(Kind, String, Json), String> {
    let (name, value) = text.split_once('=').ok_or("is not KIND.NAME=VALUE")?;
    let (kind, name) = name.split_once('.').ok_or("is not KIND.NAME=VALUE")?;
    let kind = Kind::parse(kind).filter(|kind| kind.is_placement());
    let kind = kind.ok_or("the kind is none of dir, access, port, seat and machine")?;
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    Ok((kind, name.to_owned(), Json::read(value).unwrap_or_else(|| Json::string(value))))
}

pub(super) fn publish(place: &SiteArgs, args: &PublishArgs, out: &mut Out) -> Exit {
    let (name, bytes) = match packed(&args.templates) {
        Ok(packed) => packed,
        Err(exit) => return exit,
    };
    let name = args.name.clone().unwrap_or(name);
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Controller).await?;
        let Published { reference, digest, is_new } = publish_archive(&bus, &name, bytes).await?;
        if args.json {
            let (reference, digest) = (reference.to_string(), digest.to_string());
            print(out, &json!({"reference": reference, "digest": digest, "new": is_new}));
        } else {
            out.text(&format!("reference {reference}\ndigest {digest}\n"));
        }
        Ok(Exit::Success)
    })
}

/// An archive and its name.
fn packed(path: &Path) -> Result<(String, Vec<u8>), Exit> {
    let unreadable = |error: &dyn std::error::Error| {
        say(&format!("error: {}\n", clean(&Chain(error).to_string())));
        Exit::Files
    };
    if !path.is_dir() {
        let bytes = read_file(path).map_err(|error| unreadable(&error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok((name, bytes));
    }
    let templates = read_templates(path).map_err(|error| unreadable(&error))?;
    let bytes = bundle(&templates).map_err(|error| super::place::complain(&error))?;
    Ok((object_name(&base(path), &Digest::of(&bytes)), bytes))
}

/// What a folder of templates is called: its own name, or that of the module it belongs to.
fn base(folder: &Path) -> String {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match name(&folder).filter(|name| name != "templates") {
        Some(name) => name,
        None => folder.parent().and_then(name).unwrap_or_else(|| "templates".to_owned()),
    }
}

pub(super) fn assign(place: &SiteArgs, args: &AssignArgs, out: &mut Out) -> Exit {
    let file = match args.file.as_deref().map(module_file).transpose() {
        Ok(file) => file,
        Err(exit) => return exit,
    };
    let mut placement = Placement::new();
    for (kind, name, value) in &args.placement {
        placement.entry(*kind).or_default().insert(name.clone(), value.clone());
    }
    let folder = args.templates.as_deref().filter(|text| text.parse::<Reference>().is_err());
    let packed = match folder.map(|folder| checked(args, file.as_ref(), &placement, Path::new(folder))) {
        Some(Ok(packed)) => Some(packed),
        Some(Err(exit)) => return exit,
        None => None,
    };
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Controller).await?;
        let reference = reference(&bus, args, packed).await?;
        let order =
            Order { node: args.node.clone(), module: args.module.clone(), file, placement, reference };
        let done = put_on(&bus, &site.signer()?, &order, crate::clock::now()).await?;
        for (path, other) in &done.shared {
            say(&format!(
                "warning: {} belongs to {} as well; the engine gives it to the one whose name sorts first\n",
                clean(path),
                clean(other)
            ));
        }
        for what in &done.unserved {
            say(&format!("warning: {}\n", clean(what)));
        }
        let digest = done.digest.map(|digest| digest.to_string());
        if args.json {
            print(
                out,
                &json!({
                    "node": args.node, "module": args.module, "serial": done.serial, "revision": done.revision, "digest": digest,
                }),
            );
        } else {
            let what = digest.map_or_else(
                || "without a plan: nothing of it is filled".to_owned(),
                |digest| format!("templates {digest}"),
            );
            out.text(&format!(
                "{} is assigned to {}, serial {}, revision {}, {what}\n",
                clean(&args.module),
                clean(&args.node),
                done.serial,
                done.revision
            ));
        }
        Ok(Exit::Success)
    })
}

async fn reference(
    bus: &Bus,
    args: &AssignArgs,
    packed: Option<(String, Vec<u8>)>,
) -> Result<Option<Reference>, MeshError> {
    match packed {
        Some((name, bytes)) => Ok(Some(publish_archive(bus, &name, bytes).await?.reference)),
        None => Ok(args.templates.as_deref().and_then(|text| text.parse().ok())),
    }
}

/// The archive of a folder, once the catalogue has nothing against the plan: a refused one is published to nobody.
fn checked(
    args: &AssignArgs,
    file: Option<&ModuleFile>,
    placement: &Placement,
    folder: &Path,
) -> Result<(String, Vec<u8>), Exit> {
    if !folder.is_dir() {
        say(&format!(
            "error: {} is neither a folder nor nats-object:<bucket>/<name>, file:<path> or https://…\n",
            folder.display()
        ));
        return Err(Exit::Files);
    }
    let (_, bytes) = packed(folder)?;
    let templates = read_templates(folder).map_err(|error| {
        say(&format!("error: {}\n", clean(&Chain(&error).to_string())));
        Exit::Files
    })?;
    if let Some(file) = file {
        let digest = Digest::of(&bytes);
        let name = object_name(&args.module, &digest);
        let reference = Reference::NatsObject { bucket: "mesh-templates".to_owned(), name };
        let plan = plan_for(file, placement, reference, digest);
        let faults = plan_faults(&args.node, &args.module, &plan, &templates);
        if !faults.is_empty() {
            return Err(super::place::complain(&MeshError::Refused(faults)));
        }
    }
    Ok((object_name(&args.module, &Digest::of(&bytes)), bytes))
}

/// Reads a module's file; members nobody knows are said.
pub(super) fn module_file(path: &Path) -> Result<ModuleFile, Exit> {
    let text = read_file(path).map_err(|error| {
        say(&format!("error: {}\n", clean(&Chain(&error).to_string())));
        Exit::Files
    })?;
    match read_module_file(&text) {
        Ok((file, unknown)) => {
            for place in unknown {
                let place = clean(&place);
                say(&format!(
                    "warning: {}: {place}: nobody knows this member, so it is passed over\n",
                    path.display()
                ));
            }
            Ok(file)
        }
        Err(fault) => {
            say(&format!("refused: {}: {}\n", path.display(), clean(&fault.to_string())));
            Err(Exit::Failure)
        }
    }
}

pub(super) fn unassign(place: &SiteArgs, args: &UnassignArgs, out: &mut Out) -> Exit {
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Controller).await?;
        let revision = take_off(&bus, &args.node, &args.module).await?;
        let (node, module) = (clean(&args.node), clean(&args.module));
        if args.json {
            let is_removed = revision.is_some();
            print(
                out,
                &json!({"node": args.node, "module": args.module, "removed": is_removed, "revision": revision}),
            );
        } else if revision.is_some() {
            out.text(&format!("{module} is taken off {node}\n"));
        }
        if revision.is_some() {
            return Ok(Exit::Success);
        }
        say(&format!("error: {module} is not assigned to {node}\n"));
        Ok(Exit::Failure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_is_read_from_the_command_line() {
        let check = |text: &str, kind: Kind, name: &str, value: &str| {
            let (found, found_name, json) = placed(text).unwrap();
            assert_eq!((found, found_name.as_str(), json.get()), (kind, name, value));
        };
        check("port.http=3000", Kind::Port, "http", "3000");
        check("dir.data=/var/lib/forge", Kind::Dir, "data", "\"/var/lib/forge\"");
        check("access.a.b==", Kind::Access, "a.b", "\"=\"");
        for bad in ["port.http", "port=1", "config.a=1", "port.=1", "x.y=1"] {
            assert!(placed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_folder_of_templates_is_called_as_its_module() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("forge/templates");
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(base(&folder), "forge");
        assert_eq!(base(&dir.path().join("forge")), "forge");
    }
}
