import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.Charset;
import java.util.Properties;
import java.util.TreeSet;

/** Prints for each file, given after the name of its encoding, what java.util.Properties reads. */
public final class ReadProperties {
  public static void main(String[] arguments) throws IOException {
    for (int i = 0; i < arguments.length; i += 2) {
      Properties read = new Properties();
      Charset charset = Charset.forName(arguments[i]);
      try (Reader reader = new InputStreamReader(new FileInputStream(arguments[i + 1]), charset)) {
        read.load(reader);
      } catch (IllegalArgumentException malformed) {
        System.out.println("null");
        continue;
      }
      StringBuilder line = new StringBuilder("{");
      for (String key : new TreeSet<>(read.stringPropertyNames())) {
        line.append(line.length() > 1 ? "," : "").append(quoted(key)).append(":");
        line.append(quoted(read.getProperty(key)));
      }
      System.out.println(line.append("}"));
    }
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char unit : text.toCharArray()) {
      quoted.append(String.format("\\u%04x", (int) unit));
    }
    return quoted.append("\"").toString();
  }
}
