#include "sandbox/hidden_places.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view at_home[] = {
    // keys and agents
    ".ssh",
    ".putty",
    ".config/putty",
    ".gnupg",
    ".age",
    ".config/age",
    ".config/sops",
    ".pki",
    ".step",
    ".password-store",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/gnome-keyring",
    ".gnome2/keyrings",
    ".kde/share/apps/kwallet",
    ".kde4/share/apps/kwallet",
    ".vault-token",
    ".nomad-token",
    ".doppler",
    ".tsh",
    ".vnc",
    ".screen",
    ".1password",
    ".bitwarden-ssh-agent.sock",
    "snap/bitwarden",
    // networks
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".cloudflared",
    ".ngrok",
    ".ngrok2",
    ".config/ngrok",
    ".config/filezilla",
    ".config/remmina",
    ".local/share/remmina",
    ".config/syncthing",
    ".local/state/syncthing",
    // clouds
    ".aws",
    ".awsvault",
    ".azure",
    ".azd",
    ".oci",
    ".aliyun",
    ".bluemix",
    ".ibmcloud",
    ".cf",
    ".boto",
    ".s3cfg",
    ".mc",
    ".databrickscfg",
    ".snowflake",
    ".snowsql",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/scw",
    ".config/linode-cli",
    ".config/heroku",
    ".fly",
    ".config/flyctl",
    ".netlify",
    ".config/netlify",
    ".vercel",
    ".local/share/com.vercel.cli",
    ".wrangler",
    ".config/.wrangler",
    ".railway",
    ".config/railway",
    ".supabase",
    ".config/stripe",
    ".config/rclone",
    ".terraform.d",
    ".terraformrc",
    ".pulumi",
    ".clasprc.json",
    ".sentryclirc",
    ".kaggle",
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    // containers and clusters
    ".docker/config.json",
    ".docker/contexts",
    ".docker/machine",
    ".config/containers/auth.json",
    ".kube",
    ".helm",
    ".config/helm",
    ".minikube",
    ".talos",
    ".config/argocd",
    ".argocd",
    // source code hosts
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/tea",
    ".circleci",
    ".subversion/auth",
    ".p4tickets",
    ".config/github-copilot",
    ".copilot",
    // packages
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".pypirc",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".local/share/uv/credentials",
    ".config/pypoetry/auth.toml",
    ".condarc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".bundle/config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet",
    ".hex/hex.config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".ivy2/.credentials",
    ".sbt/.credentials",
    ".jfrog",
    ".config/cachix",
    // databases and mail
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".dbt",
    ".local/share/DBeaverData",
    ".fetchmailrc",
    ".msmtprc",
    ".config/msmtp",
    ".thunderbird",
    ".config/evolution",
    ".local/share/evolution",
    "snap/thunderbird",
    // browsers
    ".mozilla",
    ".librewolf",
    ".waterfox",
    ".zen",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".cache/mozilla",
    ".cache/google-chrome",
    "snap/firefox",
    "snap/chromium",
    ".var/app",
    // messengers
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/Element",
    ".config/teams-for-linux",
    ".local/share/TelegramDesktop",
    ".purple",
    // wallets
    ".electrum",
    ".bitcoin",
    ".ethereum",
    ".litecoin",
    ".monero",
    ".config/solana",
    ".config/Exodus",
    ".foundry/keystores",
    // histories
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".sh_history",
    ".ksh_history",
    ".ash_history",
    ".local/state/bash/history",
    ".local/share/zsh/history",
    ".local/state/zsh/history",
    ".local/share/atuin",
    ".local/share/fish/fish_history",
    ".config/nushell/history.txt",
    ".config/nushell/history.sqlite3",
    ".python_history",
    ".local/state/python_history",
    ".ipython",
    ".node_repl_history",
    ".irb_history",
    ".pry_history",
    ".Rhistory",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".mongosh",
    ".dbshell",
    ".viminfo",
    ".lesshst",
    // MCP clients and coding agents
    ".claude.json",
    ".claude",
    ".config/Claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".config/Cursor",
    ".codeium",
    ".continue",
    ".windsurf",
    ".config/Code/User/mcp.json",
    ".config/opencode",
    ".local/share/opencode",
    ".config/goose",
    ".config/zed/settings.json",
    ".aider.conf.yml",
    ".mcp-auth",
};

constexpr std::string_view shared[] = {".config",
                                       ".config/autostart",
                                       ".config/systemd",
                                       ".config/systemd/user",
                                       ".local",
                                       ".local/bin",
                                       ".local/share",
                                       ".local/share/applications",
                                       ".local/state",
                                       ".cache",
                                       "bin",
                                       "go/bin",
                                       "snap"};

constexpr std::string_view services[] = {"/run/dbus",
                                         "/run/systemd/private",
                                         "/run/systemd/notify",
                                         "/run/snapd.socket",
                                         "/run/snapd-snap.socket",
                                         "/run/libvirt",
                                         "/run/lxd.socket",
                                         "/var/lib/lxd",
                                         "/var/snap/lxd",
                                         "/var/lib/incus",
                                         "/var/snap/docker",
                                         "/var/snap/microk8s",
                                         "/var/snap/multipass",
                                         "/run/secrets",
                                         "/run/credentials",
                                         "/run/keys",
                                         "/run/pcscd",
                                         "/run/tailscale"};

constexpr std::string_view containers[] = {"/run/docker.sock", "/run/docker", "/run/containerd",
                                           "/run/podman",      "/run/crio",   "/run/k3s",
                                           "/run/buildkit"};

constexpr std::string_view packages[] = {"/nix/var/nix/daemon-socket", "/nix/var/determinate",
                                         "/var/guix/daemon-socket"};

constexpr std::string_view containers_home[] = {
    ".docker/desktop", ".docker/run", ".colima", ".rd",
    ".orbstack",       ".lima",       ".finch",  ".local/share/containers/podman"};

constexpr std::string_view in_run[] = {
    "/run/media",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
};

constexpr std::string_view name_services[] = {
    "/run/nscd/socket",
    "/run/systemd/userdb",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/avahi-daemon/socket",
};

constexpr std::string_view of_root[] = {"/etc/shadow",
                                        "/etc/shadow-",
                                        "/etc/gshadow",
                                        "/etc/gshadow-",
                                        "/etc/sudoers",
                                        "/etc/sudoers.d",
                                        "/etc/krb5.keytab",
                                        "/etc/ssl/private",
                                        "/etc/letsencrypt",
                                        "/etc/docker/key.json",
                                        "/etc/kubernetes",
                                        "/etc/rancher",
                                        "/etc/wireguard",
                                        "/etc/openvpn",
                                        "/etc/ipsec.secrets",
                                        "/etc/ipsec.d",
                                        "/etc/swanctl",
                                        "/etc/ppp/chap-secrets",
                                        "/etc/ppp/pap-secrets",
                                        "/etc/netplan",
                                        "/etc/wpa_supplicant",
                                        "/etc/NetworkManager/system-connections",
                                        "/boot",
                                        "/var/lib/docker",
                                        "/var/lib/containerd",
                                        "/var/lib/containers",
                                        "/var/lib/kubelet",
                                        "/var/lib/rancher",
                                        "/var/lib/tailscale",
                                        "/var/lib/iwd"};

}  // namespace

std::span<const std::string_view> secrets_at_home() noexcept {
  return at_home;
}

std::span<const std::string_view> shared_at_home() noexcept {
  return shared;
}

std::span<const std::string_view> hidden_services() noexcept {
  return services;
}

std::span<const std::string_view> container_services() noexcept {
  return containers;
}

std::span<const std::string_view> package_services() noexcept {
  return packages;
}

std::span<const std::string_view> containers_at_home() noexcept {
  return containers_home;
}

std::span<const std::string_view> visible_in_run() noexcept {
  return in_run;
}

std::span<const std::string_view> name_services_in_run() noexcept {
  return name_services;
}

std::span<const std::string_view> secrets_of_root() noexcept {
  return of_root;
}

}  // namespace bulkhead
