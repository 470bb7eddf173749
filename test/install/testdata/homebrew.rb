# Stands in for Homebrew, which cannot be had from a distribution: reads a formula as Homebrew does for every system, compares the
# checksums with the archives that its addresses name, and then installs and tests it on this one.
#
#   ruby homebrew.rb FORMULA DIST PREFIX intel|arm
require "digest"
require "fileutils"
require "pathname"
require "tmpdir"

FORMULA, DIST, PREFIX, ARCH = ARGV
MADE = Pathname.new(PREFIX)

# Installed is a directory of a prefix.
class Installed < Pathname
  def install(*files)
    FileUtils.mkdir_p(to_s)
    FileUtils.cp(files.flatten.map(&:to_s), to_s)
  end
end

class Formula
  class << self
    attr_reader :urls, :sums, :tests, :services

    def inherited(formula)
      super
      formula.instance_variable_set(:@urls, [])
      formula.instance_variable_set(:@sums, [])
      formula.instance_variable_set(:@on, [])
      $formula = formula
    end

    def version(text = nil) = text ? @version = text : @version
    def url(text) = (@urls << [@on.dup, text])
    def sha256(text) = (@sums << text)
    %w[desc homepage license].each { |name| define_method(name) { |text| raise "no #{name}" if text.empty? } }
    %w[macos linux intel arm].each do |name|
      define_method("on_#{name}") { |&block| @on.push(name); block.call; @on.pop }
    end
    def test(&block) = @tests = block
    def service(&block) = @services = block
  end

  attr_reader :buildpath

  def initialize(path) = @buildpath = path
  def version = self.class.version
  def bin = Installed.new(MADE/"bin")
  def opt_bin = bin
  def prefix = Installed.new(MADE)
  def man1 = Installed.new(MADE/"share/man/man1")
  def var = MADE/"var"

  def system(*words)
    raise "#{words.join(" ")} failed" unless Kernel.system(*words.map(&:to_s), out: File::NULL)
  end

  def shell_output(line)
    out = `#{line}`
    raise "#{line} failed" unless $?.success?
    out
  end

  def assert_match(want, got)
    raise "#{got} has no #{want}" unless got.include?(want)
  end

  def generate_completions_from_executable(program, *args)
    %w[bash zsh fish].each do |shell|
      out = shell_output([program, *args, shell].join(" "))
      raise "no completion for #{shell}" if out.empty?
    end
  end
end

# Service takes the words of a service block.
class Service
  attr_reader :words

  def initialize(formula) = (@formula, @words = formula, {})
  def opt_bin = @formula.opt_bin
  def var = @formula.var
  %w[run keep_alive log_path error_log_path].each { |name| define_method(name) { |value| @words[name] = value } }
end

load FORMULA
archives = $formula.urls.zip($formula.sums).to_h do |(on, url), sum|
  file = File.join(DIST, File.basename(url))
  raise "#{url}: the version is not in the address" unless url.include?("/v#{$formula.version}/")
  raise "#{file}: the checksum is not #{sum}" unless Digest::SHA256.file(file).hexdigest == sum
  [on, file]
end
raise "archives for #{archives.keys}" unless archives.keys.sort == [%w[linux arm], %w[linux intel], %w[macos arm], %w[macos intel]]

Dir.mktmpdir do |dir|
  raise "tar failed" unless system("tar", "-xzf", archives[["linux", ARCH]], "-C", dir)
  inside = Dir.children(dir)
  raise "the archive has #{inside}" unless inside.length == 1
  Dir.chdir(File.join(dir, inside[0])) do # where an archive has one directory, Homebrew goes there
    formula = $formula.new(Pathname.pwd)
    formula.install
    formula.instance_eval(&$formula.tests)
    service = Service.new(formula)
    service.instance_eval(&$formula.services)
    raise "the service runs #{service.words["run"]}" unless File.executable?(service.words["run"][0])
  end
end
pages = Dir.glob((MADE/"share/man/man1/*.1").to_s)
raise "only #{pages.length} manual pages" if pages.length < 10
puts "installed #{$formula.version}, #{pages.length} manual pages"
