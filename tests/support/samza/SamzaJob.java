import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.samza.application.LegacyTaskApplication;
import org.apache.samza.config.MapConfig;
import org.apache.samza.context.Context;
import org.apache.samza.runtime.LocalApplicationRunner;
import org.apache.samza.storage.kv.KeyValueStore;
import org.apache.samza.system.IncomingMessageEnvelope;
import org.apache.samza.task.InitableTask;
import org.apache.samza.task.MessageCollector;
import org.apache.samza.task.StreamTask;
import org.apache.samza.task.TaskCoordinator;

/**
 * A job of Apache Samza's: counts each key of its input into the store "counts".
 *
 * <p>The argument is the job's properties file. Standard output has a line "processed N" for every
 * message, "started" and "ended"; Samza's log goes to standard error. A message with the value
 * "commit" is counted as others are, and its task asks for a commit. A line on standard input ends
 * the job in order, by ApplicationRunner.kill().
 */
public final class SamzaJob {

  private static PrintStream answers;
  private static int processed;

  private SamzaJob() {}

  /** Counts keys. */
  public static final class Count implements StreamTask, InitableTask {

    private KeyValueStore<String, Integer> counts;

    @Override
    @SuppressWarnings("unchecked")
    public void init(Context context) {
      counts = (KeyValueStore<String, Integer>) context.getTaskContext().getStore("counts");
    }

    @Override
    public void process(
        IncomingMessageEnvelope message, MessageCollector collector, TaskCoordinator coordinator) {
      String key = (String) message.getKey();
      Integer before = counts.get(key);
      counts.put(key, before == null ? 1 : before + 1);
      if ("commit".equals(message.getMessage())) {
        coordinator.commit(TaskCoordinator.RequestScope.CURRENT_TASK);
      }
      say();
    }
  }

  private static synchronized void say() {
    processed++;
    answers.println("processed " + processed);
  }

  public static void main(String[] arguments) throws Exception {
    answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Properties properties = new Properties();
    try (FileInputStream file = new FileInputStream(arguments[0])) {
      properties.load(file);
    }
    Map<String, String> config = new HashMap<>();
    properties.stringPropertyNames().forEach(name -> config.put(name, properties.getProperty(name)));
    LocalApplicationRunner runner =
        new LocalApplicationRunner(
            new LegacyTaskApplication(Count.class.getName()), new MapConfig(config));
    runner.run();
    answers.println("started");
    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
    runner.kill();
    runner.waitForFinish(Duration.ofSeconds(60));
    answers.println("ended");
    System.exit(0);
  }
}
