# Two DNS records for a web server. Try it from the repository's root:
#
#   quartermaster plan  examples/scenarios/web.hcl
#   quartermaster apply examples/scenarios/web.hcl --var file=/tmp/records.json --record-dir /tmp
#   quartermaster undo  /tmp/quartermaster_web_run_….jsonl
scenario "web" {
  description = "names of a web server"

  required_providers {
    dns = { source = "exec:../providers/python/dns.py" }
  }

  variable "zone" {
    type    = string
    default = "example.test"
  }

  variable "file" {
    type        = string
    default     = "/tmp/records.json"
    description = "where the provider keeps its records"
  }

  provider "dns" {
    file = var.file
  }

  action "record_create" "www" {
    zone = var.zone
    name = "www"
  }

  # Comes after `www`, because it refers to it.
  action "record_create" "alias" {
    zone = var.zone
    name = "alias-of-${action.record_create.www.fqdn}"
    ttl  = 60
  }

  # Refers to nothing, and comes last all the same.
  action "record_create" "ready" {
    depends_on = [action.record_create.alias]
    zone       = var.zone
    name       = "ready"
  }

  output "address" {
    value = "https://${action.record_create.www.fqdn}/"
  }
}
