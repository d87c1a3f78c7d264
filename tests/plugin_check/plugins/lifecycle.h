/* The lifecycle of a correct plugin, included at the end of a source that defines:
 *
 *   instance        a struct whose first member is a `struct base`
 *   EXTENSION       the ID of the extension that the plugin provides
 *   HOST_EXTENSION  the ID of the host's extension for this kind of plugin
 *   table           the plugin's table
 *   SECOND_EXTENSION and second_table  another extension (optional)
 *   stop_work()     releases what the instance has acquired
 *   drain_work()    is called by drain() */

static bh_status configure(void *self_, bh_str json, bh_error *error) {
  struct base *self = self_;
  const bh_host *host = self->host;
  if (json.n < 2 || json.p[0] != '{' || json.p[json.n - 1] != '}') {
    return refuse(error, BH_E_INVALID, "the configuration must be a JSON object");
  }
  self->executor = host->get_ext(host->ctx, BH_EXT_HOST_EXECUTOR);
  self->fds = host->get_ext(host->ctx, BH_EXT_HOST_FD);
  self->kind = host->get_ext(host->ctx, HOST_EXTENSION);
  if (self->executor == NULL || self->fds == NULL || self->kind == NULL) {
    return refuse(error, BH_E_UNSUPPORTED, "the host lacks an extension");
  }
  return BH_OK;
}

static bh_status start(void *self, bh_error *error) {
  (void)self;
  (void)error;
  return BH_OK;
}

static bh_status probe(void *self, bh_error *error) {
  (void)self;
  (void)error;
  return BH_OK;
}

static void drain(void *self, uint64_t deadline_ns) {
  (void)deadline_ns;
  drain_work(self);
}

static void stop(void *self) {
  stop_work(self);
}

static void destroy(void *self) {
  free(self);
}

static const void *get_ext(void *self, const char *id) {
  (void)self;
#ifdef SECOND_EXTENSION
  if (strcmp(id, SECOND_EXTENSION) == 0) return &second_table;
#endif
  return strcmp(id, EXTENSION) == 0 ? &table : NULL;
}

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  struct base *self;
  if (strcmp(id, PLUGIN_ID) != 0) return refuse(error, BH_E_NOT_FOUND, "unknown plugin");
  self = calloc(1, sizeof(instance));
  if (self == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  self->host = host;
  self->plugin.size = sizeof self->plugin;
  self->plugin.self = self;
  self->plugin.configure = configure;
  self->plugin.start = start;
  self->plugin.probe = probe;
  self->plugin.drain = drain;
  self->plugin.stop = stop;
  self->plugin.destroy = destroy;
  self->plugin.get_ext = get_ext;
  *out = &self->plugin;
  return BH_OK;
}

static bh_status init(const bh_host *host, bh_error *error) {
  (void)host;
  (void)error;
  return BH_OK;
}

static void deinit(void) {}

static const bh_descriptor *descriptor(uint32_t i) {
#ifdef SECOND_EXTENSION
  static const char *const provides[] = {EXTENSION, SECOND_EXTENSION, NULL};
#else
  static const char *const provides[] = {EXTENSION, NULL};
#endif
  static const bh_descriptor value = {
      .size = sizeof(bh_descriptor), .id = PLUGIN_ID, .provides = provides};
  return i == 0 ? &value : NULL;
}

__attribute__((visibility("default"))) const bh_entry *bh_plugin_entry_v1(void);
const bh_entry *bh_plugin_entry_v1(void) {
  static const bh_entry entry = {.size = sizeof(bh_entry),
                                 .abi_major = BH_ABI_MAJOR,
                                 .abi_minor_built = BH_ABI_MINOR,
                                 .abi_minor_needed = 0,
                                 .init = init,
                                 .deinit = deinit,
                                 .count = 1,
                                 .abi_rc = BH_ABI_RC,
                                 .descriptor = descriptor,
                                 .create = create};
  return &entry;
}
