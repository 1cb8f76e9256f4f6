import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.samza.Partition;
import org.apache.samza.checkpoint.CheckpointManager;
import org.apache.samza.checkpoint.CheckpointV1;
import org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory;
import org.apache.samza.clustermanager.container.placement.ContainerPlacementMetadataStore;
import org.apache.samza.config.MapConfig;
import org.apache.samza.container.ContainerHeartbeatClient;
import org.apache.samza.container.ExecutionContainerIdManager;
import org.apache.samza.container.LocalityManager;
import org.apache.samza.container.SamzaContainer;
import org.apache.samza.container.TaskName;
import org.apache.samza.container.grouper.task.TaskAssignmentManager;
import org.apache.samza.container.grouper.task.TaskPartitionAssignmentManager;
import org.apache.samza.container.placement.ContainerPlacementMessage;
import org.apache.samza.container.placement.ContainerPlacementRequestMessage;
import org.apache.samza.container.placement.ContainerPlacementResponseMessage;
import org.apache.samza.coordinator.metadatastore.CoordinatorStreamStore;
import org.apache.samza.coordinator.metadatastore.NamespaceAwareCoordinatorStreamStore;
import org.apache.samza.coordinator.stream.CoordinatorStreamSystemConsumer;
import org.apache.samza.coordinator.stream.CoordinatorStreamSystemProducer;
import org.apache.samza.coordinator.stream.CoordinatorStreamWriter;
import org.apache.samza.coordinator.stream.messages.CoordinatorStreamMessage;
import org.apache.samza.coordinator.stream.messages.Delete;
import org.apache.samza.coordinator.stream.messages.SetChangelogMapping;
import org.apache.samza.coordinator.stream.messages.SetConfig;
import org.apache.samza.coordinator.stream.messages.SetContainerHostMapping;
import org.apache.samza.coordinator.stream.messages.SetExecutionEnvContainerIdMapping;
import org.apache.samza.coordinator.stream.messages.SetJobCoordinatorMetadataMessage;
import org.apache.samza.coordinator.stream.messages.SetMigrationMetaMessage;
import org.apache.samza.coordinator.stream.messages.SetTaskContainerMapping;
import org.apache.samza.coordinator.stream.messages.SetTaskModeMapping;
import org.apache.samza.coordinator.stream.messages.SetTaskPartitionMapping;
import org.apache.samza.drain.DrainUtils;
import org.apache.samza.job.JobCoordinatorMetadata;
import org.apache.samza.job.metadata.JobCoordinatorMetadataManager;
import org.apache.samza.job.model.JobModel;
import org.apache.samza.job.model.LocalityModel;
import org.apache.samza.job.model.ProcessorLocality;
import org.apache.samza.job.model.TaskMode;
import org.apache.samza.metadatastore.MetadataStore;
import org.apache.samza.metrics.MetricsRegistryMap;
import org.apache.samza.metrics.reporter.MetricsSnapshot;
import org.apache.samza.serializers.MetricsSnapshotSerde;
import org.apache.samza.serializers.Serde;
import org.apache.samza.serializers.SerdeFactory;
import org.apache.samza.serializers.model.SamzaObjectMapper;
import org.apache.samza.startpoint.StartpointManager;
import org.apache.samza.startpoint.StartpointSpecific;
import org.apache.samza.storage.ChangelogStreamManager;
import org.apache.samza.storage.StorageManagerUtil;
import org.apache.samza.system.SystemStreamPartition;
import org.apache.samza.util.CoordinatorStreamUtil;
import org.apache.samza.util.ExponentialSleepStrategy;
import org.apache.samza.util.HttpUtil;

/**
 * The published classes of Apache Samza, on request.
 *
 * <p>One JSON array [operation, argument...] per line of standard input, one JSON object {"ok":
 * value} or {"failed": reason} per line of standard output; Samza's log goes to standard error.
 * Whatever an answer says was said by a class of Samza's: this program passes it on.
 */
public final class SamzaPeer {

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final ObjectMapper SAMZA = SamzaObjectMapper.getObjectMapper();
  private static final TypeReference<TreeMap<String, String>> TEXTS = new TypeReference<>() {};
  private static final TypeReference<TreeMap<String, Integer>> NUMBERS = new TypeReference<>() {};

  private final MapConfig config;
  private final CoordinatorStreamStore store;
  private final CoordinatorStreamSystemConsumer consumer;

  private SamzaPeer(Map<String, String> config) {
    this.config = new MapConfig(config);
    store = new CoordinatorStreamStore(this.config, new MetricsRegistryMap());
    store.init();
    consumer = new CoordinatorStreamSystemConsumer(this.config, new MetricsRegistryMap());
    consumer.register();
    consumer.start();
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    SamzaPeer peer = null;
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      Map<String, Object> answer = new HashMap<>();
      try {
        JsonNode request = JSON.readTree(line);
        if (request.get(0).asText().equals("open")) {
          if (peer != null) {
            peer.close();
          }
          peer = new SamzaPeer(JSON.convertValue(request.get(1), TEXTS));
          answer.put("ok", true);
        } else {
          answer.put("ok", answered(peer, request));
        }
      } catch (Exception failure) {
        failure.printStackTrace();
        answer.put("failed", failure.toString());
      }
      answers.println(JSON.writeValueAsString(answer));
    }
    if (peer != null) {
      peer.close();
    }
  }

  /** {bytes: what the factory's serde makes of the value, in hex; same: whether it reads data as it}. */
  @SuppressWarnings("unchecked")
  private static Object serialised(String factory, JsonNode given, String data) throws Exception {
    Serde<Object> serde =
        (Serde<Object>)
            ((SerdeFactory<Object>) Class.forName(factory).getDeclaredConstructor().newInstance())
                .getSerde("s", new MapConfig());
    Object value = JSON.convertValue(given, Object.class);
    if (factory.contains("Long")) {
      value = given.asLong();
    } else if (factory.contains("Byte")) {
      value = HexFormat.of().parseHex(given.asText());
    }
    Object read = serde.fromBytes(HexFormat.of().parseHex(data));
    Map<String, Object> found = new HashMap<>();
    found.put("bytes", HexFormat.of().formatHex(serde.toBytes(value)));
    found.put("same", Objects.deepEquals(read, value));
    return found;
  }

  private static Object answered(SamzaPeer peer, JsonNode request) throws Exception {
    JsonNode argument = request.get(1);
    switch (request.get(0).asText()) {
      case "job-model":
        return SAMZA.writeValueAsString(SAMZA.readValue(argument.asText(), JobModel.class));
      case "locality-model":
        return SAMZA.writeValueAsString(SAMZA.readValue(argument.asText(), LocalityModel.class));
      case "processor-locality":
        return SAMZA.writeValueAsString(
            SAMZA.readValue(argument.asText(), ProcessorLocality.class));
      case "job-model-at":
        return SAMZA.writeValueAsString(SamzaContainer.readJobModel(argument.asText(), 10));
      case "text-at":
        return HttpUtil.read(
            new URL(argument.asText()), 30_000, new ExponentialSleepStrategy(2.0, 100, 1000));
      case "serde":
        return serialised(
            argument.get(0).asText(), argument.get(1), argument.get(2).asText());
      case "is-alive":
        return new ContainerHeartbeatClient(argument.get(0).asText(), argument.get(1).asText())
            .requestHeartbeat()
            .isAlive();
      case "writer-main":
        CoordinatorStreamWriter.main(JSON.convertValue(argument, String[].class));
        return true;
      case "all":
        return peer.all();
      case "bootstrapped":
        return peer.bootstrapped(argument);
      case "managers":
        return peer.managers();
      case "manage":
        return peer.manage(argument);
      case "deploy":
        return peer.deploy(argument);
      case "send":
        return peer.send(argument);
      case "placement":
        return peer.placement(argument);
      case "ask-placement":
        return peer.askPlacement(argument).toString();
      case "placement-messages":
        return peer.placementMessages(UUID.fromString(argument.asText()));
      case "forget-placement":
        return peer.forgetPlacement(UUID.fromString(argument.asText()));
      case "startpoint":
        return peer.startpoint(argument);
      case "store-directory":
        return storeDirectory(argument);
      case "write-offset":
        return writeOffset(argument);
      case "read-offset":
        return readOffset(argument);
      case "snapshot":
        return snapshot(argument.asText());
      case "checkpoint":
        return peer.checkpoint(argument);
      case "drain":
        return DrainUtils.writeDrainNotification(peer.store).toString();
      default:
        throw new IllegalArgumentException("no such operation: " + request.get(0));
    }
  }

  /** What MetricsSnapshotSerde reads from the bytes, given in hex. */
  private static Object snapshot(String data) {
    MetricsSnapshot found =
        new MetricsSnapshotSerde().fromBytes(HexFormat.of().parseHex(data));
    return found.getAsMap();
  }

  /** Where the store of a task is below a base directory: [base, store, task, mode]. */
  private static Object storeDirectory(JsonNode wanted) {
    String[] names = JSON.convertValue(wanted, String[].class);
    return new StorageManagerUtil()
        .getTaskStoreDir(
            new File(names[0]), names[1], new TaskName(names[2]), TaskMode.valueOf(names[3]))
        .toString();
  }

  /** Writes all offset files of a store: {directory, system, stream, partition, offset, side}. */
  private static Object writeOffset(JsonNode wanted) throws Exception {
    new StorageManagerUtil()
        .writeOffsetFile(
            new File(wanted.get("directory").asText()),
            Map.of(changelogPartition(wanted), wanted.get("offset").asText()),
            wanted.get("side").asBoolean());
    return true;
  }

  /** What the offset files of a store say for its partition, null where none of them counts. */
  private static Object readOffset(JsonNode wanted) {
    SystemStreamPartition partition = changelogPartition(wanted);
    return new StorageManagerUtil()
        .readOffsetFile(
            new File(wanted.get("directory").asText()),
            Set.of(partition),
            wanted.get("side").asBoolean())
        .get(partition);
  }

  private static SystemStreamPartition changelogPartition(JsonNode named) {
    return new SystemStreamPartition(
        named.get("system").asText(),
        named.get("stream").asText(),
        new Partition(named.get("partition").asInt()));
  }

  private void close() {
    consumer.stop();
    store.close();
  }

  private MetadataStore namespace(String type) {
    return new NamespaceAwareCoordinatorStreamStore(store, type);
  }

  // ------------------------------------------------------------------------------------- reading

  /** {type: {key: value}} as CoordinatorStreamStore has it. */
  private Object all() {
    Map<String, Map<String, String>> found = new TreeMap<>();
    for (Map.Entry<String, byte[]> entry : store.all().entrySet()) {
      CoordinatorStreamStore.CoordinatorMessageKey key =
          CoordinatorStreamStore.deserializeCoordinatorMessageKeyFromJson(entry.getKey());
      found
          .computeIfAbsent(key.getNamespace(), type -> new TreeMap<>())
          .put(key.getKey(), new String(entry.getValue(), StandardCharsets.UTF_8));
    }
    return found;
  }

  /** Configuration and messages of some types, as CoordinatorStreamSystemConsumer has them. */
  private Object bootstrapped(JsonNode types) {
    List<Object> messages = new ArrayList<>();
    consumer.bootstrap();
    for (JsonNode type : types) {
      for (CoordinatorStreamMessage message : consumer.getBootstrappedStream(type.asText())) {
        Map<String, Object> shown = new TreeMap<>();
        shown.put("type", message.getType());
        shown.put("key", message.getKey());
        if (!message.isDelete()) {
          shown.put("values", message.getMessageMap().get("values"));
          shown.put("source", message.getSource());
          shown.put("username", message.getUsername());
          shown.put("timestamp", message.getTimestamp());
        }
        messages.add(shown);
      }
    }
    return Map.of("config", consumer.getConfig(), "messages", messages);
  }

  /** The stream in the words of Samza's managers, one view for each. */
  private Object managers() throws Exception {
    Map<String, Object> views = new TreeMap<>();
    views.put("config", CoordinatorStreamUtil.readConfigFromCoordinatorStream(store));
    Map<String, String> hosts = new TreeMap<>();
    new LocalityManager(namespace(SetContainerHostMapping.TYPE))
        .readLocality()
        .getProcessorLocalities()
        .forEach((id, locality) -> hosts.put(id, locality.host()));
    views.put("locality", hosts);
    views.put("assignment", assignments().readTaskAssignment());
    Map<String, String> modes = new TreeMap<>();
    assignments().readTaskModes().forEach((t, mode) -> modes.put(t.getTaskName(), mode.toString()));
    views.put("modes", modes);
    Map<String, List<String>> partitions = new TreeMap<>();
    Map<SystemStreamPartition, List<String>> read = partitions().readTaskPartitionAssignments();
    for (Map.Entry<SystemStreamPartition, List<String>> entry : read.entrySet()) {
      partitions.put(SAMZA.writeValueAsString(entry.getKey()), entry.getValue());
    }
    views.put("partitions", partitions);
    Map<String, Integer> changelog = new TreeMap<>();
    changelog().readPartitionMapping().forEach((task, n) -> changelog.put(task.getTaskName(), n));
    views.put("changelog", changelog);
    views.put("execution", execution().readExecutionEnvironmentContainerIdMapping());
    views.put("metadata", SAMZA.valueToTree(metadata().readJobCoordinatorMetadata()));
    return views;
  }

  // ------------------------------------------------------------------------------------- writing

  /** Writes what is named, each kind by its manager; an SSP without tasks is deleted. */
  private Object manage(JsonNode what) throws Exception {
    if (what.has("config")) {
      CoordinatorStreamUtil.writeConfigToCoordinatorStream(
          store, new MapConfig(JSON.convertValue(what.get("config"), TEXTS)));
    }
    if (what.has("locality")) {
      LocalityManager manager = new LocalityManager(namespace(SetContainerHostMapping.TYPE));
      JSON.convertValue(what.get("locality"), TEXTS).forEach(manager::writeContainerToHostMapping);
    }
    if (what.has("assignment")) {
      assignments().writeTaskContainerMappings(
          JSON.convertValue(
              what.get("assignment"), new TypeReference<Map<String, Map<String, TaskMode>>>() {}));
    }
    if (what.has("unassigned")) {
      String[] tasks = JSON.convertValue(what.get("unassigned"), String[].class);
      assignments().deleteTaskContainerMappings(List.of(tasks));
    }
    if (what.has("partitions")) {
      partitions().writeTaskPartitionAssignments(partitionsIn(what.get("partitions")));
    }
    if (what.has("changelog")) {
      Map<TaskName, Integer> mapping = new HashMap<>();
      JSON.convertValue(what.get("changelog"), NUMBERS)
          .forEach((task, partition) -> mapping.put(new TaskName(task), partition));
      changelog().writePartitionMapping(mapping);
    }
    if (what.has("execution")) {
      JSON.convertValue(what.get("execution"), TEXTS)
          .forEach(execution()::writeExecutionEnvironmentContainerIdMapping);
    }
    if (what.has("metadata")) {
      String[] ids = JSON.convertValue(what.get("metadata"), String[].class);
      metadata().writeJobCoordinatorMetadata(new JobCoordinatorMetadata(ids[0], ids[1], ids[2]));
    }
    store.flush();
    return true;
  }

  private static Map<SystemStreamPartition, List<String>> partitionsIn(JsonNode named)
      throws Exception {
    Map<SystemStreamPartition, List<String>> partitions = new HashMap<>();
    Map<String, List<String>> given = JSON.convertValue(named, new TypeReference<>() {});
    for (Map.Entry<String, List<String>> entry : given.entrySet()) {
      partitions.put(
          SAMZA.readValue(entry.getKey(), SystemStreamPartition.class), entry.getValue());
    }
    return partitions;
  }

  /** Does what a deployment of Samza's does with the configuration. */
  private Object deploy(JsonNode wanted) {
    CoordinatorStreamUtil.writeConfigToCoordinatorStream(
        new MapConfig(JSON.convertValue(wanted, TEXTS)), true);
    return true;
  }

  /** Writes a checkpoint of each task: {task: {partition as JSON: offset of its last message}}. */
  private Object checkpoint(JsonNode wanted) throws Exception {
    CheckpointManager manager =
        new KafkaCheckpointManagerFactory().getCheckpointManager(config, new MetricsRegistryMap());
    manager.createResources();
    Map<String, Map<String, String>> given = JSON.convertValue(wanted, new TypeReference<>() {});
    for (String task : given.keySet()) {
      manager.register(new TaskName(task));
    }
    manager.start();
    for (Map.Entry<String, Map<String, String>> of : given.entrySet()) {
      Map<SystemStreamPartition, String> offsets = new HashMap<>();
      for (Map.Entry<String, String> entry : of.getValue().entrySet()) {
        offsets.put(
            SAMZA.readValue(entry.getKey(), SystemStreamPartition.class), entry.getValue());
      }
      manager.writeCheckpoint(new TaskName(of.getKey()), new CheckpointV1(offsets));
    }
    manager.stop();
    return true;
  }

  /** Sends [source, type, key, value...] by the message class of the type; no value: a Delete. */
  private Object send(JsonNode messages) {
    CoordinatorStreamSystemProducer producer =
        new CoordinatorStreamSystemProducer(config, new MetricsRegistryMap());
    for (JsonNode message : messages) {
      producer.register(message.get(0).asText());
    }
    producer.start();
    for (JsonNode message : messages) {
      producer.send(made(JSON.convertValue(message, String[].class)));
    }
    producer.stop();
    return true;
  }

  private static CoordinatorStreamMessage made(String[] m) {
    if (m.length == 3) {
      return new Delete(m[0], m[2], m[1]);
    }
    switch (m[1]) {
      case SetConfig.TYPE:
        return new SetConfig(m[0], m[2], m[3]);
      case SetChangelogMapping.TYPE:
        return new SetChangelogMapping(m[0], m[2], Integer.parseInt(m[3]));
      case SetContainerHostMapping.TYPE:
        return new SetContainerHostMapping(m[0], m[2], m[3], m[4], m[5]);
      case SetTaskContainerMapping.TYPE:
        return new SetTaskContainerMapping(m[0], m[2], m[3]);
      case SetTaskModeMapping.TYPE:
        return new SetTaskModeMapping(m[0], m[2], m[3]);
      case SetTaskPartitionMapping.TYPE:
        return new SetTaskPartitionMapping(m[0], m[2], m[3]);
      case SetExecutionEnvContainerIdMapping.TYPE:
        return new SetExecutionEnvContainerIdMapping(m[0], m[2], m[3]);
      case SetJobCoordinatorMetadataMessage.TYPE:
        return new SetJobCoordinatorMetadataMessage(m[0], m[2], m[3]);
      case SetMigrationMetaMessage.TYPE:
        return new SetMigrationMetaMessage(m[0], m[2], m[3]);
      default:
        throw new IllegalArgumentException("no class for " + m[1]);
    }
  }

  /** Writes a request, answers it, and says both as Samza reads them back. */
  private Object placement(JsonNode request) throws InterruptedException {
    ContainerPlacementMetadataStore placements = new ContainerPlacementMetadataStore(store);
    placements.start();
    UUID id =
        placements.writeContainerPlacementRequestMessage(
            request.get(0).asText(),
            request.get(1).asText(),
            request.get(2).asText(),
            Duration.ofSeconds(30),
            1_700_000_000_000L);
    ContainerPlacementRequestMessage asked =
        read(() -> placements.readContainerPlacementRequestMessage(id));
    placements.writeContainerPlacementResponseMessage(
        ContainerPlacementResponseMessage.fromContainerPlacementRequestMessage(
            asked, ContainerPlacementMessage.StatusCode.SUCCEEDED, "größe", 1_700_000_000_001L));
    ContainerPlacementResponseMessage answered =
        read(() -> placements.readContainerPlacementResponseMessage(id));
    return List.of(id.toString(), asked.toString(), answered.toString());
  }

  private ContainerPlacementMetadataStore placements() {
    ContainerPlacementMetadataStore placements = new ContainerPlacementMetadataStore(store);
    placements.start();
    return placements;
  }

  /** Writes a request of deployment, processor, host, expiry in ms or null, time; its uuid. */
  private UUID askPlacement(JsonNode request) {
    return placements()
        .writeContainerPlacementRequestMessage(
            request.get(0).asText(),
            request.get(1).asText(),
            request.get(2).asText(),
            request.get(3).isNull() ? null : Duration.ofMillis(request.get(3).asLong()),
            request.get(4).asLong());
  }

  /** [request, answer] of a uuid as Samza reads them, each null where there is none. */
  private Object placementMessages(UUID id) {
    ContainerPlacementMetadataStore placements = placements();
    return Arrays.asList(
        placements
            .readContainerPlacementRequestMessage(id)
            .map(ContainerPlacementRequestMessage::toString)
            .orElse(null),
        placements
            .readContainerPlacementResponseMessage(id)
            .map(ContainerPlacementResponseMessage::toString)
            .orElse(null));
  }

  /** Deletes both messages of a uuid. */
  private Object forgetPlacement(UUID id) {
    placements().deleteAllContainerPlacementMessages(id);
    return true;
  }

  /** Writes a start offset for a task's input partition, and says it as Samza reads it back. */
  private Object startpoint(JsonNode request) throws Exception {
    SystemStreamPartition input =
        SAMZA.readValue(request.get(0).asText(), SystemStreamPartition.class);
    TaskName task = new TaskName(request.get(1).asText());
    StartpointManager startpoints = new StartpointManager(store);
    startpoints.start();
    startpoints.writeStartpoint(input, task, new StartpointSpecific(request.get(2).asText()));
    return read(() -> startpoints.readStartpoint(input, task)).toString();
  }

  /** What was just written: Samza's store reads as far as its last fetch knew of records. */
  private static <T> T read(Supplier<Optional<T>> reader) throws InterruptedException {
    for (int attempt = 0; attempt < 1000; attempt++) {
      Optional<T> found = reader.get();
      if (found.isPresent()) {
        return found.get();
      }
      Thread.sleep(20);
    }
    throw new IllegalStateException("what was written does not come back");
  }

  private TaskAssignmentManager assignments() {
    return new TaskAssignmentManager(
        namespace(SetTaskContainerMapping.TYPE), namespace(SetTaskModeMapping.TYPE));
  }

  private TaskPartitionAssignmentManager partitions() {
    return new TaskPartitionAssignmentManager(namespace(SetTaskPartitionMapping.TYPE));
  }

  private ChangelogStreamManager changelog() {
    return new ChangelogStreamManager(namespace(SetChangelogMapping.TYPE));
  }

  private ExecutionContainerIdManager execution() {
    return new ExecutionContainerIdManager(namespace(SetExecutionEnvContainerIdMapping.TYPE));
  }

  private JobCoordinatorMetadataManager metadata() {
    return new JobCoordinatorMetadataManager(
        namespace(SetJobCoordinatorMetadataMessage.TYPE),
        JobCoordinatorMetadataManager.ClusterType.YARN,
        new MetricsRegistryMap());
  }
}
